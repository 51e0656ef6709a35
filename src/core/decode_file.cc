// A saved state of decoding: a header, the members, and a checksum of all that
// stands before it. Numbers are little-endian, 8 bytes each.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/decode_step.h"
#include "core/linear_plan.h"
#include "polyattn/decode.h"

namespace polyattn {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kMagic = 0x3144414E54544150;  // "PATTNAD1"
// Of a state with decay: each member says whether it has it, and then how much.
constexpr std::uint64_t kDecayMagic = 0x3244414E54544150;  // "PATTNAD2"
// Of a state in a window: its tokens stand before the members, and of these no
// more are saved than are seen.
constexpr std::uint64_t kWindowMagic = 0x3344414E54544150;  // "PATTNAD3"

// FNV-1a: it is there for accidents, not for enemies.
std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte b : bytes)
    hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  return hash;
}

class Writer {
 public:
  template <typename T>
  void number(T value) {
    static_assert(sizeof(T) == 8);
    raw(std::as_bytes(std::span(&value, 1)));
  }
  void text(const std::string& s) {
    number(static_cast<std::uint64_t>(s.size()));
    raw(std::as_bytes(std::span(s)));
  }
  void raw(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    const std::size_t at = bytes_.size();
    bytes_.resize(at + bytes.size());
    std::memcpy(bytes_.data() + at, bytes.data(), bytes.size());
  }
  std::vector<std::byte> finish() {
    number(checksum(bytes_));
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

// `used` of `capacity` rows of each head, from the first on, without the gaps.
struct SavedRows {
  std::int64_t heads, capacity, first, used;
};
void write_rows(Writer& out, const std::vector<std::byte>& rows,
                const SavedRows& saved, std::size_t row_bytes) {
  for (std::int64_t h = 0; h < saved.heads; ++h)
    out.raw(std::span(rows).subspan(
        static_cast<std::size_t>(h * saved.capacity + saved.first) * row_bytes,
        static_cast<std::size_t>(saved.used) * row_bytes));
}

}  // namespace

std::vector<std::byte> DecodeState::save() const {
  const bool decays = std::any_of(members_.begin(), members_.end(),
                                  [](const Member& m) { return !m.n.empty(); });
  const std::int64_t window = options_.window;
  Writer out;
  out.number(window > 0 ? kWindowMagic : decays ? kDecayMagic : kMagic);
  for (const std::int64_t size :
       {shape_.batch, shape_.heads, shape_.kv_heads, shape_.d, shape_.e})
    out.number(size);
  out.text(options_.activation.to_string());
  out.number(scale_);
  out.number(static_cast<std::int64_t>(options_.mode));
  out.number(static_cast<std::int64_t>(options_.compute));
  out.number(static_cast<std::int64_t>(options_.storage));
  if (window > 0) out.number(window);
  const std::size_t element = size_of(options_.storage);
  for (const Member& m : members_) {
    const std::int64_t used =
        window > 0 ? std::min(m.cached, window - 1) : m.cached;
    const SavedRows rows = {shape_.kv_heads, m.capacity, m.cached - used, used};
    out.number(m.length);
    out.number(used);
    out.number(std::int64_t{m.spoilt});
    if (decays) {
      out.number(std::int64_t{!m.n.empty()});
      for (const double n : m.n) out.number(n);
      for (const double x : m.log_decay) out.number(x);
    }
    write_rows(out, m.k, rows, static_cast<std::size_t>(shape_.d) * element);
    write_rows(out, m.v, rows, static_cast<std::size_t>(shape_.e) * element);
    out.number(static_cast<std::uint64_t>(m.sums.size()));
    out.raw(m.sums);
  }
  return out.finish();
}

// Takes a saved state apart; never reads beyond its end.
class DecodeState::Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {
    if (bytes.size() < 2 * sizeof(std::uint64_t)) refuse("it is too short");
    std::uint64_t sum = 0;
    std::memcpy(&sum, bytes.data() + bytes.size() - sizeof(sum), sizeof(sum));
    left_ = bytes.first(bytes.size() - sizeof(sum));
    const auto magic = number<std::uint64_t>();
    decays_ = magic == kDecayMagic;
    windowed_ = magic == kWindowMagic;
    if (magic != kMagic && !decays_ && !windowed_)
      refuse("it does not begin as one, or is of another version");
    if (checksum(bytes.first(bytes.size() - sizeof(sum))) != sum)
      refuse("its checksum is wrong: it is damaged or incomplete");
  }

  DecodeState state() {
    DecodeShape shape;
    for (std::int64_t* size :
         {&shape.batch, &shape.heads, &shape.kv_heads, &shape.d, &shape.e})
      *size = number<std::int64_t>();
    // Each member takes at least four numbers.
    if (shape.batch < 1 ||
        static_cast<std::uint64_t>(shape.batch) > left_.size() / 32)
      refuse("a batch of " + std::to_string(shape.batch) + " cannot be in it");
    DecodeOptions options;
    options.activation = Activation::parse(text());
    options.scale = number<double>();
    options.mode = choice<DecodeMode>(DecodeMode::kSums);
    options.compute = choice<DType>(DType::kF64);
    options.storage = choice<DType>(DType::kF64);
    if (windowed_) {
      options.window = number<std::int64_t>();
      if (options.window == 0) refuse("it has a window of 0 tokens");
    }
    DecodeState state(shape, options);
    for (Member& m : state.members_) read_member(state, m);
    if (!left_.empty()) refuse("it goes on behind its end");
    return state;
  }

 private:
  [[noreturn]] static void refuse(const std::string& why) {
    throw std::invalid_argument("[decode] not a saved state: " + why);
  }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > left_.size()) refuse("it ends early");
    const auto part = left_.first(count);
    left_ = left_.subspan(count);
    return part;
  }
  template <typename T>
  T number() {
    T value{};
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string text() {
    const auto bytes = take(number<std::uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  template <typename E>
  E choice(E last) {
    const auto value = number<std::int64_t>();
    if (value < 0 || value > static_cast<std::int64_t>(last))
      refuse("a choice of " + std::to_string(value) + " does not exist");
    return static_cast<E>(value);
  }

  std::vector<std::byte> rows(std::int64_t heads, std::int64_t count,
                              std::int64_t width, DType dtype) {
    const double bytes =
        static_cast<double>(heads) * static_cast<double>(count) *
        static_cast<double>(width) * static_cast<double>(size_of(dtype));
    if (bytes > static_cast<double>(left_.size())) refuse("it ends early");
    const auto part = take(static_cast<std::uint64_t>(bytes));
    return {part.begin(), part.end()};
  }

  void read_member(const DecodeState& s, Member& m) {
    m.length = number<std::int64_t>();
    m.cached = number<std::int64_t>();
    m.spoilt = choice(std::int64_t{1}) != 0;
    // Such that the length can be counted on, and exactly in double.
    constexpr std::int64_t kMost = std::int64_t{1} << 53;
    if (m.cached < 0 || m.length < m.cached || m.length > kMost)
      refuse(std::to_string(m.cached) + " of " + std::to_string(m.length) +
             " tokens cannot be cached");
    const std::int64_t seen = std::min(m.length, s.options_.window - 1);
    if (windowed_ && m.cached != seen)
      refuse(std::to_string(m.cached) + " cached tokens are not the " +
             std::to_string(seen) + " that its window sees");
    if (decays_ && choice(std::int64_t{1}) != 0) read_decay(s, m);
    m.k = rows(s.shape_.kv_heads, m.cached, s.shape_.d, s.options_.storage);
    m.v = rows(s.shape_.kv_heads, m.cached, s.shape_.e, s.options_.storage);
    m.capacity = m.cached;
    const auto bytes = number<std::uint64_t>();
    const double wanted = static_cast<double>(s.shape_.kv_heads) *
                          static_cast<double>(s.features_) *
                          static_cast<double>(s.width_) *
                          static_cast<double>(size_of(s.options_.compute));
    if (bytes != 0 &&
        (s.features_ == 0 || static_cast<double>(bytes) != wanted))
      refuse("its sums take " + std::to_string(bytes) + " bytes");
    if (!windowed_ && bytes == 0 && m.cached != m.length)
      refuse("tokens are neither cached nor in sums");
    if (s.features_ > 0 && m.cached >= (bytes == 0 ? s.limit_ : s.fold_))
      refuse(std::to_string(m.cached) + " cached tokens are too many");
    const auto sums = take(bytes);
    m.sums.assign(sums.begin(), sums.end());
  }

  void read_decay(const DecodeState& s, Member& m) {
    const Problem p = decode_problem("decode", s.shape_, s.options_);
    if (const std::string why = linear_obstacle(p); !why.empty())
      refuse("it has decay, but " + why);
    const std::int64_t heads = s.shape_.kv_heads;
    const double wanted =
        8 * static_cast<double>(heads) * (static_cast<double>(m.cached) + 1);
    if (wanted > static_cast<double>(left_.size())) refuse("it ends early");
    const auto most = static_cast<double>(m.length - m.cached);
    for (std::int64_t g = 0; g < heads; ++g) {
      m.n.push_back(number<double>());
      if (!(m.n.back() >= 0 && m.n.back() <= most))
        refuse("its sums cannot stand for " + std::to_string(m.n.back()) +
               " keys");
    }
    for (std::int64_t i = 0; i < heads * m.cached; ++i) {
      m.log_decay.push_back(number<double>());
      if (!(m.log_decay.back() <= 0))
        refuse("a log_decay of " + std::to_string(m.log_decay.back()) +
               " is not <= 0");
    }
  }

  std::span<const std::byte> left_;
  bool decays_ = false;
  bool windowed_ = false;
};

DecodeState DecodeState::load(std::span<const std::byte> bytes) {
  return Reader(bytes).state();
}

}  // namespace polyattn
