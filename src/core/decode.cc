#include "polyattn/decode.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/decay.h"
#include "core/decode_step.h"
#include "core/kernels/kernels.h"
#include "core/linear_plan.h"
#include "core/problem.h"

namespace polyattn {
namespace {

constexpr char kDecode[] = "decode";

[[noreturn]] void refuse_decode(const std::string& what) {
  throw std::invalid_argument("[" + std::string(kDecode) + "] " + what);
}

void check_shape(const DecodeShape& s) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  for (const std::int64_t size : {s.batch, s.heads, s.kv_heads, s.d, s.e})
    if (size < 1 || size > kMost)
      refuse_decode("a size of " + std::to_string(size) + " is not in 1 .. " +
                    std::to_string(kMost));
  if (s.heads % s.kv_heads != 0)
    refuse_decode(std::to_string(s.heads) + " heads are not a multiple of " +
                  std::to_string(s.kv_heads) + " key heads");
}

// Tokens that are folded together: what is dense in a step should cost less
// than the sums.
std::int64_t fold_of(std::int64_t features) {
  return features < 512 ? kStripTokens : 2 * kStripTokens;
}

}  // namespace

DecodeState::DecodeState(const DecodeShape& shape, const DecodeOptions& options)
    : shape_(shape), options_(options) {
  check_shape(shape_);
  check_options();
  measure();
  members_.resize(static_cast<std::size_t>(shape_.batch));
}

void DecodeState::check_options() const {
  if (options_.mode > DecodeMode::kSums)
    refuse_decode("unknown mode " +
                  std::to_string(static_cast<int>(options_.mode)));
  if (options_.storage > DType::kF64) refuse_decode("unknown storage type");
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (options_.window < 0 || options_.window > kMost)
    refuse_decode("a window of " + std::to_string(options_.window) +
                  " tokens is not in 0 .. " + std::to_string(kMost) +
                  " (0: no window)");
}

// What follows from shape and options.
void DecodeState::measure() {
  const Problem p = decode_problem(kDecode, shape_, options_);
  scale_ = p.scale;
  if (options_.window > 0) {
    if (options_.mode == DecodeMode::kSums)
      refuse_decode("no sums: a window of " + std::to_string(options_.window) +
                    " tokens forgets what they cannot");
    // What was kept is moved once in so many tokens, which come together.
    room_ = options_.window - 1 + std::max(options_.window, kStripTokens);
    return;
  }
  const std::string obstacle = linear_obstacle(p);
  if (options_.mode == DecodeMode::kSums && !obstacle.empty())
    refuse_decode("no sums: " + obstacle);
  if (options_.mode == DecodeMode::kCache || !obstacle.empty()) return;
  const bool sum = options_.activation.divisor == Divisor::kSum;
  features_ = count_features(options_.activation, shape_.d);
  width_ = state_width(shape_.e + (sum ? 1 : 0));
  fold_ = fold_of(features_);
  limit_ = fold_;
  if (options_.mode == DecodeMode::kSums) return;
  const double sums = static_cast<double>(features_) *
                      static_cast<double>(width_) *
                      static_cast<double>(size_of(options_.compute));
  const double token = static_cast<double>(shape_.d + shape_.e) *
                       static_cast<double>(size_of(options_.storage));
  limit_ = std::max(fold_, static_cast<std::int64_t>(sums / token));
}

std::int64_t DecodeState::length(std::int64_t member) const {
  return members_.at(static_cast<std::size_t>(member)).length;
}

std::int64_t DecodeState::folded(std::int64_t member) const {
  const Member& m = members_.at(static_cast<std::size_t>(member));
  return options_.window > 0 ? 0 : m.length - m.cached;
}

std::size_t DecodeState::bytes() const {
  std::size_t total = 0;
  for (const Member& m : members_)
    total += m.k.size() + m.v.size() + m.sums.size() +
             sizeof(double) * m.n.size() *
                 (1 + static_cast<std::size_t>(m.capacity));
  return total;
}

void DecodeState::select(std::span<const std::int64_t> index) {
  if (index.empty()) refuse_decode("an index of no members");
  std::vector<Member> chosen;
  for (const std::int64_t i : index) {
    if (i < 0 || i >= shape_.batch)
      refuse_decode("member " + std::to_string(i) + " of a batch of " +
                    std::to_string(shape_.batch));
    chosen.push_back(members_[static_cast<std::size_t>(i)]);
  }
  members_ = std::move(chosen);
  shape_.batch = std::ssize(members_);
}

// One call of step(), or of append(): then there is no output.
class DecodeState::Step {
 public:
  Step(DecodeState& state, const DecodeInputs& in, const Tensor* o,
       Parallel& parallel)
      : s_(state), in_(in), o_(o), parallel_(parallel) {}

  void run() {
    if (o_ != nullptr) {
      check_decode_inputs(kDecode, s_.shape_, in_, *o_);
    } else {
      check_decode_tokens(kDecode, s_.shape_, in_, in_.k.size[2]);
    }
    check_decode_decay(kDecode, s_.shape_, s_.options_, in_);
    for (std::int64_t b = 0; b < s_.shape_.batch; ++b) {
      const std::int64_t count = in_.counts.empty()
                                     ? in_.k.size[2]
                                     : in_.counts[static_cast<std::size_t>(b)];
      Member& member = s_.members_[static_cast<std::size_t>(b)];
      for (std::int64_t t = 0; t < count;) {
        const std::int64_t piece = piece_of(member, count - t);
        append(member, b, t, piece);
        if (o_ != nullptr) attend(member, b, t, piece);
        if (s_.features_ > 0 && member.cached >= limit_of(member)) fold(member);
        t += piece;
      }
    }
  }

 private:
  std::int64_t limit_of(const Member& m) const {
    return m.sums.empty() ? s_.limit_ : s_.fold_;
  }

  // Tokens that are read together: up to the next fold, or as many as have room
  // behind those that the first of them sees.
  std::int64_t piece_of(const Member& m, std::int64_t left) const {
    if (s_.room_ > 0)
      return std::min(left, s_.room_ - (s_.options_.window - 1));
    return s_.features_ == 0 ? left : std::min(left, limit_of(m) - m.cached);
  }

  // Leaves what the next tokens see, if there is no room for all.
  void make_room(Member& m, std::int64_t piece) const {
    if (s_.room_ == 0 || m.cached + piece <= s_.room_) return;
    const std::int64_t kept = s_.options_.window - 1;
    const std::int64_t heads = s_.shape_.kv_heads;
    const DType dtype = s_.options_.storage;
    keep_last_rows(m.k, {heads, m.cached, m.capacity, s_.shape_.d}, kept,
                   dtype);
    keep_last_rows(m.v, {heads, m.cached, m.capacity, s_.shape_.e}, kept,
                   dtype);
    m.cached = kept;
  }

  void append(Member& m, std::int64_t b, std::int64_t t, std::int64_t piece) {
    const DecodeShape& shape = s_.shape_;
    make_room(m, piece);
    const std::int64_t needed = m.cached + piece;
    if (needed > m.capacity) {
      std::int64_t capacity = std::max(needed, 2 * m.capacity);
      if (s_.features_ > 0) capacity = std::min(capacity, limit_of(m));
      if (s_.room_ > 0) capacity = std::min(capacity, s_.room_);
      grow_rows(m.k, {shape.kv_heads, m.cached, m.capacity, shape.d}, capacity,
                s_.options_.storage);
      grow_rows(m.v, {shape.kv_heads, m.cached, m.capacity, shape.e}, capacity,
                s_.options_.storage);
      m.capacity = capacity;
    }
    copy_rows(in_.k, b, t, piece, cache(m.k, m, shape.d), m.cached);
    copy_rows(in_.v, b, t, piece, cache(m.v, m, shape.e), m.cached);
    append_decay(m, b, t, piece);
    m.cached += piece;
    m.length += piece;
  }

  void append_decay(Member& m, std::int64_t b, std::int64_t t,
                    std::int64_t piece) const {
    if (!in_.log_decay && m.n.empty()) return;
    const auto heads = static_cast<std::size_t>(s_.shape_.kv_heads);
    if (m.n.empty()) {  // nothing has faded so far
      m.n.assign(heads, static_cast<double>(m.length - m.cached));
      m.log_decay.assign(heads * static_cast<std::size_t>(m.cached), 0);
    }
    for (std::int64_t i = t; i < t + piece; ++i) {
      for (std::int64_t g = 0; g < s_.shape_.kv_heads; ++g) {
        double value = 0;
        if (const auto& x = in_.log_decay)
          value =
              load_element(x->data, x->dtype,
                           broadcast_offset(x->size, x->stride, b, g, i, 0));
        m.log_decay.push_back(value);
      }
    }
  }

  // The cache of a member with room for all its capacity.
  Tensor cache(std::vector<std::byte>& bytes, const Member& m,
               std::int64_t width) const {
    return view(bytes.data(), s_.options_.storage,
                {1, s_.shape_.kv_heads, m.capacity, width});
  }

  // A call of attention on the cached tokens.
  Problem problem_of(Member& m, std::int64_t b, std::int64_t t,
                     std::int64_t piece) const {
    Problem p = decode_problem(kDecode, s_.shape_, s_.options_);
    p.n = piece;
    p.m = m.cached;
    if (piece > 0) p.in.q = member_rows(in_.q, b, t, piece);
    p.in.k = cache(m.k, m, s_.shape_.d);
    p.in.v = cache(m.v, m, s_.shape_.e);
    p.in.k.size[2] = p.in.v.size[2] = m.cached;
    const std::int64_t before = s_.options_.window - 1;
    if (before >= 0 && before < m.cached - 1) p.window.left = before;
    if (m.n.empty()) return p;
    const std::int64_t heads = s_.shape_.kv_heads;
    p.in.log_decay = ConstTensor{m.log_decay.data(),
                                 DType::kF64,
                                 {1, heads, m.cached, 1},
                                 {heads * m.cached, 1, heads, 1}};
    return p;
  }

  void attend(Member& m, std::int64_t b, std::int64_t t, std::int64_t piece) {
    const Problem p = problem_of(m, b, t, piece);
    Tensor out = *o_;
    const ConstTensor rows = member_rows(out, b, t, piece);
    out.data = const_cast<void*>(rows.data);
    out.size = rows.size;
    if (m.sums.empty()) return run_cached(p, {.o = out}, parallel_);
    const FoldedTokens folded = {m.sums.data(), m.length - m.cached, m.n};
    const bool fine = p.compute == DType::kF64
                          ? attend_sums<double>(p, folded, out, parallel_)
                          : attend_sums<float>(p, folded, out, parallel_);
    if (!fine && !m.spoilt) refuse_sums(p, b, t);
  }

  void fold(Member& m) {
    const auto element =
        static_cast<std::int64_t>(size_of(s_.options_.compute));
    m.sums.resize(static_cast<std::size_t>(s_.shape_.kv_heads * s_.features_ *
                                           s_.width_ * element));
    Problem p = problem_of(m, 0, 0, 0);
    p.causal = Causal::kNone;
    fold_cached(p, m.sums.data(), parallel_);
    m.spoilt = m.spoilt || !all_finite(p.in.k) || !all_finite(p.in.v);
    for (std::size_t g = 0; g < m.n.size(); ++g)
      for (std::size_t x = g; x < m.log_decay.size(); x += m.n.size())
        m.n[g] = next_n(m.n[g], m.log_decay[x]);
    m.log_decay.clear();
    m.cached = 0;
    if (m.capacity == s_.fold_) return;
    m.capacity = 0;
    m.k = {};
    m.v = {};
  }

  void refuse_sums(const Problem& p, std::int64_t b, std::int64_t t) const {
    for (const ConstTensor* x : {&p.in.q, &p.in.k, &p.in.v})
      if (!all_finite(*x)) return;
    throw std::overflow_error(
        "[" + std::string(kDecode) + "] the sums of member " +
        std::to_string(b) + " are not finite at token " + std::to_string(t) +
        ": features of " + p.activation.to_string() + " overflow " +
        name_of(p.compute) +
        "; decode with a cache, compute in f64, or make q and k smaller");
  }

  DecodeState& s_;
  const DecodeInputs& in_;
  const Tensor* o_;
  Parallel& parallel_;
};

void DecodeState::step(const DecodeInputs& inputs, const Tensor& o,
                       Parallel& parallel) {
  Step(*this, inputs, &o, parallel).run();
}

void DecodeState::append(const ConstTensor& k, const ConstTensor& v,
                         std::span<const std::int64_t> counts,
                         Parallel& parallel,
                         const std::optional<ConstTensor>& log_decay) {
  const DecodeInputs inputs{
      .q = {}, .k = k, .v = v, .counts = counts, .log_decay = log_decay};
  Step(*this, inputs, nullptr, parallel).run();
}

}  // namespace polyattn
