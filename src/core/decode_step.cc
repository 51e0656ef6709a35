#include "core/decode_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/decay.h"
#include "core/kernels/kernels.h"
#include "core/linear_plan.h"
#include "core/workspace.h"

namespace polyattn {
namespace {

std::string text_of_size(const Extents& size) {
  std::string text = "[";
  for (std::size_t i = 0; i < size.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(size[i]);
  return text + "]";
}

void require_size(const char* op, const char* name, const ConstTensor& t,
                  const Extents& size) {
  if (t.size != size)
    throw std::invalid_argument("[" + std::string(op) + "] " + name +
                                " of size " + text_of_size(t.size) +
                                " != " + text_of_size(size));
}

void check_decode_counts(const char* op, std::span<const std::int64_t> counts,
                         std::int64_t batch, std::int64_t tokens) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("[" + std::string(op) + "] " + what);
  };
  if (counts.empty()) return;
  if (std::ssize(counts) != batch)
    refuse(std::to_string(counts.size()) + " counts for a batch of " +
           std::to_string(batch));
  for (const std::int64_t count : counts)
    if (count < 0 || count > tokens)
      refuse("a count of " + std::to_string(count) + " of " +
             std::to_string(tokens) + " tokens");
}

const std::byte* bytes_at(const ConstTensor& t, std::int64_t index) {
  return static_cast<const std::byte*>(t.data) +
         index * static_cast<std::int64_t>(size_of(t.dtype));
}

template <typename T>
std::size_t linear_room(const Problem& p, int strip, int workers) {
  Arena arena(nullptr);
  LinearStorage<T>(arena, p, plan_linear(p, strip, 1), 0, 0, workers);
  return arena.used() + Arena::kAlignment;
}

std::size_t dense_room(const Problem& p, int workers) {
  Arena arena(nullptr);
  if (p.compute == DType::kF64) {
    ForwardStorage<double>(arena, p, plan_forward(p, strip_width<double>()),
                           workers);
  } else {
    ForwardStorage<float>(arena, p, plan_forward(p, strip_width<float>()),
                          workers);
  }
  return arena.used() + Arena::kAlignment;
}

template <typename T>
void run_chunk(const Problem& p, const AttentionResults& results,
               Parallel& parallel) {
  const Workspace room(linear_room<T>(p, strip_width<T>(), parallel.workers()));
  linear_forward<T>(p, results, room.span().data(), parallel);
}

// What sums give to a row, and its N.
struct RowFade {
  double since, n;
};

// Of all rows: [H, N].
std::vector<RowFade> row_fades(const Problem& p, const FoldedTokens& folded) {
  std::vector<RowFade> fades;
  const Sequence s = p.sequence(0);
  for (std::int64_t h = 0; h < p.heads; ++h) {
    const std::int64_t g = p.kv_head(h);
    RowFade fade = {1, static_cast<double>(folded.count)};
    if (p.decays()) fade.n = folded.n[static_cast<std::size_t>(g)];
    for (std::int64_t j = 0; j < p.m; ++j) {
      const double log_decay = p.decays() ? log_decay_at(p, s, g, j) : 0;
      if (log_decay != 0) fade.since *= std::exp(log_decay);
      fade.n = next_n(fade.n, log_decay);
      if (j >= p.m - p.n) fades.push_back(fade);
    }
  }
  return fades;
}

template <typename T>
void fold_typed(const Problem& p, std::byte* sums, Parallel& parallel) {
  const int strip = strip_width<T>();
  const Workspace room(linear_room<T>(p, strip, parallel.workers()));
  fold_keys(p, reinterpret_cast<T*>(sums), room.span().data(), parallel);
}

}  // namespace

Problem decode_problem(const char* op, const DecodeShape& shape,
                       const DecodeOptions& options) {
  AttentionInputs in;
  const auto empty = [&](std::int64_t heads, std::int64_t width) {
    const Extents size = {1, heads, 0, width};
    return ConstTensor{nullptr, options.storage, size,
                       contiguous_strides(size)};
  };
  in.q = empty(shape.heads, shape.d);
  in.k = empty(shape.kv_heads, shape.d);
  in.v = empty(shape.kv_heads, shape.e);
  return check_problem(op, in,
                       {.activation = options.activation,
                        .scale = options.scale,
                        .causal = Causal::kLast,
                        .compute = options.compute,
                        .path = Path::kDense});
}

void check_decode_inputs(const char* op, const DecodeShape& s,
                         const DecodeInputs& in, const Tensor& o) {
  const std::int64_t tokens = in.q.size[2];
  require_size(op, "q", in.q, {s.batch, s.heads, tokens, s.d});
  check_decode_tokens(op, s, in, tokens);
  require_size(op, "o", o, {s.batch, s.heads, tokens, s.e});
  const Problem p = check_problem(op, {.q = in.q, .k = in.k, .v = in.v}, {});
  check_results(op, p, {.o = o});
}

void check_decode_tokens(const char* op, const DecodeShape& s,
                         const DecodeInputs& in, std::int64_t tokens) {
  require_size(op, "k", in.k, {s.batch, s.kv_heads, tokens, s.d});
  require_size(op, "v", in.v, {s.batch, s.kv_heads, tokens, s.e});
  const Extents none = {s.batch, s.heads, 0, s.d};
  const ConstTensor q{nullptr, DType::kF32, none, contiguous_strides(none)};
  check_problem(op, {.q = q, .k = in.k, .v = in.v}, {});
  check_decode_counts(op, in.counts, s.batch, tokens);
}

ConstTensor member_rows(const ConstTensor& t, std::int64_t member,
                        std::int64_t token, std::int64_t count) {
  ConstTensor part = t;
  part.data = bytes_at(t, row_offset(t.stride, member, 0, token));
  part.size = {1, t.size[1], count, t.size[3]};
  return part;
}

void grow_rows(std::vector<std::byte>& rows, const RowsShape& shape,
               std::int64_t capacity, DType dtype) {
  const auto row = static_cast<std::size_t>(shape.width) * size_of(dtype);
  std::vector<std::byte> fresh(static_cast<std::size_t>(shape.heads) *
                               static_cast<std::size_t>(capacity) * row);
  for (std::int64_t h = 0; h < shape.heads && shape.used > 0; ++h)
    std::memcpy(
        fresh.data() + static_cast<std::size_t>(h * capacity) * row,
        rows.data() + static_cast<std::size_t>(h * shape.capacity) * row,
        static_cast<std::size_t>(shape.used) * row);
  rows = std::move(fresh);
}

void keep_last_rows(std::vector<std::byte>& rows, const RowsShape& shape,
                    std::int64_t count, DType dtype) {
  const auto row = static_cast<std::size_t>(shape.width) * size_of(dtype);
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    std::byte* const own =
        rows.data() + static_cast<std::size_t>(h * shape.capacity) * row;
    std::memmove(own, own + static_cast<std::size_t>(shape.used - count) * row,
                 static_cast<std::size_t>(count) * row);
  }
}

void copy_rows(const ConstTensor& from, std::int64_t member, std::int64_t token,
               std::int64_t count, const Tensor& cache, std::int64_t at) {
  const std::int64_t width = from.size[3];
  for (std::int64_t h = 0; h < from.size[1]; ++h) {
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t src = row_offset(from.stride, member, h, token + r);
      const std::int64_t dst = row_offset(cache.stride, 0, h, at + r);
      if (from.dtype == cache.dtype) {
        std::memcpy(const_cast<std::byte*>(bytes_at(cache, dst)),
                    bytes_at(from, src),
                    static_cast<std::size_t>(width) * size_of(from.dtype));
        continue;
      }
      for (std::int64_t c = 0; c < width; ++c)
        store_element(cache.data, cache.dtype, dst + c,
                      load_element(from.data, from.dtype, src + c));
    }
  }
}

void check_decode_decay(const char* op, const DecodeShape& s,
                        const DecodeOptions& options, const DecodeInputs& in) {
  if (!in.log_decay) return;
  if (options.window > 0)
    throw std::invalid_argument("[" + std::string(op) +
                                "] log_decay together with a window of " +
                                std::to_string(options.window) + " tokens");
  const Extents none = {s.batch, s.heads, 0, s.d};
  const Problem p = check_problem(
      op,
      {.q = {nullptr, DType::kF32, none, contiguous_strides(none)},
       .k = in.k,
       .v = in.v,
       .log_decay = in.log_decay},
      {.activation = options.activation,
       .causal = Causal::kLast,
       .compute = options.compute});
  if (const std::string obstacle = linear_obstacle(p); !obstacle.empty())
    throw std::invalid_argument("[" + std::string(op) +
                                "] log_decay: " + obstacle);
  check_decay_values(op, p);
}

void run_cached(const Problem& p, const AttentionResults& results,
                Parallel& parallel) {
  if (p.decays()) {
    Problem whole = p;
    whole.chunk = std::max({p.n, p.m, std::int64_t{1}});
    return p.compute == DType::kF64
               ? run_chunk<double>(whole, results, parallel)
               : run_chunk<float>(whole, results, parallel);
  }
  const Workspace room(dense_room(p, parallel.workers()));
  const auto run =
      p.compute == DType::kF64 ? dense_forward<double> : dense_forward<float>;
  run(p, results, room.span().data(), parallel);
}

void fold_cached(const Problem& p, std::byte* sums, Parallel& parallel) {
  if (p.compute == DType::kF64) return fold_typed<double>(p, sums, parallel);
  fold_typed<float>(p, sums, parallel);
}

template <typename T>
bool attend_sums(const Problem& p, const FoldedTokens& folded, const Tensor& o,
                 Parallel& parallel) {
  const bool by_sum = p.activation.divisor == Divisor::kSum;
  const double sign = by_sum ? constant_sign(p.activation) : 1;
  const std::int64_t width = state_width(p.e + (by_sum ? 1 : 0));
  const auto rows = static_cast<std::size_t>(p.heads * p.n);
  const auto sums = std::make_unique_for_overwrite<T[]>(
      rows * static_cast<std::size_t>(width));
  const auto own =
      std::make_unique_for_overwrite<T[]>(rows * static_cast<std::size_t>(p.e));
  std::vector<RowState> states(rows);

  Problem all = p;
  all.causal = Causal::kNone;
  all.in.log_decay = {};
  const int strip = strip_width<T>();
  const Workspace room(linear_room<T>(all, strip, parallel.workers()));
  apply_state(all, reinterpret_cast<T*>(folded.sums), sums.get(),
              room.span().data(), parallel);
  Problem raw = p;
  if (!by_sum) raw.activation.divisor = Divisor::kOne;
  run_cached(raw,
             {.o = view(own.get(), {1, p.heads, p.n, p.e}), .rows = states},
             parallel);

  const std::vector<RowFade> fades = row_fades(p, folded);
  bool fine = true;
  for (std::int64_t h = 0; h < p.heads; ++h) {
    for (std::int64_t i = 0; i < p.n; ++i) {
      const std::int64_t row = h * p.n + i;
      const RowFade& fade = fades[static_cast<std::size_t>(row)];
      double scale = p.activation.row_scale(fade.n);
      double size = 1;
      if (by_sum) {
        const double part = states[static_cast<std::size_t>(row)].scale;
        size = part == 0 ? 0 : 1 / part;
        const double z =
            size +
            fade.since * sign * static_cast<double>(sums[row * width + p.e]);
        scale = std::isfinite(z) ? (z > 0 ? 1 / z : 0) : NAN;
      }
      const std::int64_t at = row_offset(o.stride, 0, h, i);
      for (std::int64_t c = 0; c < p.e; ++c) {
        const double x =
            (static_cast<double>(own[row * p.e + c]) * size +
             fade.since * static_cast<double>(sums[row * width + c])) *
            scale;
        fine = fine && std::isfinite(x);
        store_element(o.data, o.dtype, at + c, x);
      }
    }
  }
  return fine;
}

template bool attend_sums<float>(const Problem&, const FoldedTokens&,
                                 const Tensor&, Parallel&);
template bool attend_sums<double>(const Problem&, const FoldedTokens&,
                                  const Tensor&, Parallel&);

}  // namespace polyattn
