// Reproducible inputs for tests: a Case says what, an Instance owns the memory.
//
//   const Case c{.heads = 4, .kv_heads = 2, .n = 33, .formula = "x^3/sqrt(N)"};
//   SCOPED_TRACE(::testing::PrintToString(c));
//   Instance instance(c);
//   Outputs got = instance.outputs(c.dtype);
//   attention_forward(instance.inputs(), instance.config(), got.results());
//   Outputs want = instance.reference();  // f64, forward and backward
//   ... at(got.o.tensor, {b, h, i, c}) against at(want.o.tensor, ...)
//   EXPECT_TRUE(got.o.padding_untouched());
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numbers>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "polyattn/attention.h"
#include "polyattn/reference.h"

namespace polyattn::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The shape of a bias or mask before it is repeated.
enum class Extra {
  kAbsent,
  kFull,     // [B, H, N, M]
  kPadding,  // [B, 1, 1, M]
  kHeads,    // [1, H, N, M]
  kRows,     // [1, 1, N, M]
  kQueries,  // [B, H, N, 1]
  kOne,      // [1, 1, 1, 1]
  kCycle,    // [B / 2, 1, N, M], or [1, 1, N, M] of an odd batch
};

// The shape of log_decay before it is repeated.
enum class Decay {
  kAbsent,
  kHeads,  // [1, G, 1, 1]: a number for each key head
  kGates,  // [B, G, M, 1]
  kShared  // [1, 1, M, 1]
};

struct Case {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, n = 8, m = 8, d = 4, e = 4;
  std::string formula = "softmax";
  Causal causal = Causal::kNone;
  Extra mask = Extra::kAbsent;
  Extra bias = Extra::kAbsent;
  // Ragged batch: these replace batch, n and m.
  std::vector<std::int64_t> q_lengths = {}, k_lengths = {};
  DType dtype = DType::kF32;  // of q, k, v, bias and d_o
  DType compute = DType::kF32;
  std::optional<double> scale = {};
  double magnitude = 1;  // standard deviation of the scores at default scale
  // Memory is [B, N, H, D] with gaps between the rows; extras are [B, H, M, N].
  bool strided = false;
  std::uint64_t seed = 1;
  Path path = Path::kDense;
  std::int64_t chunk = 0;
  double dropout = 0;
  Window window = {};
  Decay decay = Decay::kAbsent;
};

inline void PrintTo(const Case& c, std::ostream* out) {
  *out << '"' << c.formula << "\" B=" << c.batch << " H=" << c.heads
       << " G=" << c.kv_heads << " N=" << c.n << " M=" << c.m << " D=" << c.d
       << " E=" << c.e << " causal=" << static_cast<int>(c.causal)
       << " mask=" << static_cast<int>(c.mask)
       << " bias=" << static_cast<int>(c.bias) << ' ' << name_of(c.dtype)
       << " in " << name_of(c.compute) << " magnitude=" << c.magnitude
       << " scale=" << c.scale.value_or(0) << (c.strided ? " strided" : "")
       << " seed=" << c.seed << " path=" << static_cast<int>(c.path)
       << " chunk=" << c.chunk << " dropout=" << c.dropout
       << " window=" << c.window.left << ',' << c.window.right
       << " decay=" << static_cast<int>(c.decay);
  for (std::size_t b = 0; b < c.q_lengths.size(); ++b) {
    *out << (b == 0 ? " ragged " : ",") << c.q_lengths[b] << 'x'
         << c.k_lengths[b];
  }
}

// Whether causality and the window let row i see key j, by the words of
// polyattn/attention.h alone; for a batch that is not ragged.
inline bool sees(const Case& c, std::int64_t i, std::int64_t j) {
  const std::int64_t own = c.causal == Causal::kLast ? i + c.m - c.n : i;
  if (c.causal != Causal::kNone && j > own) return false;
  if (c.window.left >= 0 && j < own - c.window.left) return false;
  return c.window.right < 0 || j <= own + c.window.right;
}

inline std::int64_t offset_of(const Extents& stride, const Extents& index) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < 4; ++i) offset += index[i] * stride[i];
  return offset;
}

inline double at(const ConstTensor& t, const Extents& index) {
  return load_element(t.data, t.dtype, offset_of(t.stride, index));
}

// Calls body(index) for every index in order, the last running fastest.
template <typename Body>
void for_each_index(const Extents& size, const Body& body) {
  for (std::int64_t b = 0; b < size[0]; ++b)
    for (std::int64_t h = 0; h < size[1]; ++h)
      for (std::int64_t i = 0; i < size[2]; ++i)
        for (std::int64_t c = 0; c < size[3]; ++c) body(Extents{b, h, i, c});
}

// Memory that ends right behind its last element, for the sanitizers, and
// holds NaN (all bits set, in every type) where nothing was written.
struct Buffer {
  Buffer() = default;
  Buffer(DType dtype, const Extents& size, const Extents& stride)
      : tensor{nullptr, dtype, size, stride} {
    std::int64_t count = 1;
    for (std::size_t i = 0; i < 4; ++i) count += (size[i] - 1) * stride[i];
    if (element_count(size) == 0) count = 0;
    bytes.assign(static_cast<std::size_t>(count) * size_of(dtype),
                 std::byte{0xff});
    tensor.data = bytes.data();
  }
  Buffer(Buffer&&) = default;  // moving a vector keeps its address
  Buffer& operator=(Buffer&&) = default;

  void set(const Extents& index, double value) {
    store_element(tensor.data, tensor.dtype, offset_of(tensor.stride, index),
                  value);
  }

  // Whether the gaps between the rows hold what they held at first.
  bool padding_untouched() const {
    std::vector<std::byte> rest = bytes;
    const auto width = static_cast<std::int64_t>(size_of(tensor.dtype));
    for_each_index(tensor.size, [&](const Extents& index) {
      const auto from = rest.begin() + offset_of(tensor.stride, index) * width;
      std::fill(from, from + width, std::byte{0xff});
    });
    return std::count(rest.begin(), rest.end(), std::byte{0xff}) ==
           std::ssize(rest);
  }

  std::vector<std::byte> bytes;
  Tensor tensor;
};

// All that forward and backward write, NaN at first.
struct Outputs {
  AttentionResults results() { return {o.tensor, rows, stats}; }
  AttentionGradients gradients() {
    AttentionGradients all{dq.tensor, dk.tensor, dv.tensor};
    if (d_bias.tensor.size != Extents{}) all.d_bias = d_bias.tensor;
    if (d_log_decay.tensor.size != Extents{})
      all.d_log_decay = d_log_decay.tensor;
    return all;
  }
  AttentionBackwardInputs backward_inputs(const ConstTensor& d_o) const {
    return {d_o, o.tensor, rows};
  }

  Buffer o, dq, dk, dv, d_bias;
  std::vector<RowState> rows;
  std::vector<AttentionStats> stats;
  Buffer d_log_decay;
};

class Instance {
 public:
  explicit Instance(const Case& c) : case_(c), random_(c.seed) {
    q_offsets_ = offsets(c.q_lengths);
    k_offsets_ = offsets(c.k_lengths);
    Extents rows = {c.batch, 0, c.n, c.m};  // of q, k and v in memory
    if (!c.q_lengths.empty()) {
      rows = {1, 0, q_offsets_.back(), k_offsets_.back()};
      case_.batch = std::ssize(c.q_lengths);
      case_.n = *std::max_element(c.q_lengths.begin(), c.q_lengths.end());
      case_.m = *std::max_element(c.k_lengths.begin(), c.k_lengths.end());
    }
    q = random_buffer({rows[0], c.heads, rows[2], c.d}, c.magnitude);
    k = random_buffer({rows[0], c.kv_heads, rows[3], c.d}, 1);
    v = random_buffer({rows[0], c.kv_heads, rows[3], c.e}, 1);
    d_o = random_buffer({rows[0], c.heads, rows[2], c.e}, 1);
    if (c.bias != Extra::kAbsent) make_bias();
    if (c.mask != Extra::kAbsent) make_mask();
    if (c.decay != Decay::kAbsent) make_decay();
  }
  Instance(const Instance&) = delete;  // views would point into the original
  Instance& operator=(const Instance&) = delete;

  AttentionInputs inputs() const {
    AttentionInputs in;
    in.q = q.tensor, in.k = k.tensor, in.v = v.tensor;
    if (case_.bias != Extra::kAbsent) in.bias = bias.tensor;
    if (case_.mask != Extra::kAbsent) {
      in.mask = {mask.data(), mask_size, extra_stride(mask_size)};
    }
    in.q_offsets = q_offsets_;
    in.k_offsets = k_offsets_;
    if (case_.decay != Decay::kAbsent) in.log_decay = log_decay.tensor;
    return in;
  }

  AttentionConfig config() const {
    return {.activation = Activation::parse(case_.formula),
            .scale = case_.scale,
            .causal = case_.causal,
            .compute = case_.compute,
            .path = case_.path,
            .chunk = case_.chunk,
            .dropout = {.p = case_.dropout, .seed = 0x123456789 * case_.seed},
            .window = case_.window};
  }

  Outputs outputs(DType dtype) const {
    const auto like = [&](const Buffer& b) {
      return Buffer(dtype, b.tensor.size, b.tensor.stride);
    };
    Outputs out{like(d_o), like(q), like(k), like(v), {}, {}, {}, {}};
    if (case_.decay != Decay::kAbsent) out.d_log_decay = like(log_decay);
    if (case_.bias != Extra::kAbsent) {
      const Extents& size = bias.tensor.size;
      Extents padded = size;
      if (case_.strided) padded[3] += 3;
      out.d_bias = Buffer(dtype, size, contiguous_strides(padded));
    }
    const Extents& s = q.tensor.size;
    out.rows.assign(static_cast<std::size_t>(s[0] * s[1] * s[2]), {kNaN, kNaN});
    out.stats.assign(static_cast<std::size_t>(case_.batch * s[1]),
                     {kNaN, kNaN, kNaN, -1});
    return out;
  }

  // What is right, in f64.
  Outputs reference() const {
    Outputs out = outputs(DType::kF64);
    reference_forward(inputs(), config(), out.results());
    reference_backward(inputs(), config(), d_o.tensor, out.gradients());
    return out;
  }

  // Tests may change these.
  Buffer q, k, v, d_o, bias, log_decay;
  std::vector<std::uint8_t> mask;  // laid out as inputs().mask says
  Extents mask_size{};

 private:
  using Lengths = std::vector<std::int64_t>;

  static Lengths offsets(const Lengths& lengths) {
    if (lengths.empty()) return {};
    Lengths sums = {0};
    for (const std::int64_t n : lengths) sums.push_back(sums.back() + n);
    return sums;
  }

  double uniform() {  // in (0, 1)
    return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53;
  }

  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  Buffer random_buffer(const Extents& size, double deviation) {
    Extents stride = contiguous_strides(size);
    if (case_.strided) {
      const std::int64_t row = size[3] + 3, rows = size[1] * row;
      stride = {size[2] * rows, row, rows, 1};
    }
    Buffer buffer(case_.dtype, size, stride);
    for_each_index(size, [&](const Extents& index) {
      buffer.set(index, deviation * normal());
    });
    return buffer;
  }

  Extents extra_size(Extra extra) const {
    Extents size = {case_.batch, case_.heads, case_.n, case_.m};
    if (extra == Extra::kHeads || extra == Extra::kRows) size[0] = 1;
    if (extra == Extra::kPadding || extra == Extra::kRows) size[1] = 1;
    if (extra == Extra::kPadding) size[2] = 1;
    if (extra == Extra::kQueries) size[3] = 1;
    if (extra == Extra::kOne) size = {1, 1, 1, 1};
    if (extra == Extra::kCycle) {
      size[0] = size[0] % 2 == 0 ? size[0] / 2 : 1;
      size[1] = 1;
    }
    return size;
  }

  Extents extra_stride(const Extents& size) const {
    Extents stride = contiguous_strides(size);
    if (case_.strided) stride[2] = 1, stride[3] = size[2];
    return stride;
  }

  // One entry in eight is -inf.
  void make_bias() {
    const Extents size = extra_size(case_.bias);
    bias = Buffer(case_.dtype, size, extra_stride(size));
    for_each_index(size, [&](const Extents& index) {
      const double value = normal();
      bias.set(index, uniform() < 0.125 ? -kInf : value);
    });
  }

  // One entry in four is zero, and all of row 1; the others are 1 to 255.
  void make_mask() {
    mask_size = extra_size(case_.mask);
    mask.resize(static_cast<std::size_t>(element_count(mask_size)));
    const Extents stride = extra_stride(mask_size);
    for_each_index(mask_size, [&](const Extents& index) {
      const bool seen = uniform() >= 0.25 && index[2] != 1;
      mask[static_cast<std::size_t>(offset_of(stride, index))] =
          static_cast<std::uint8_t>(seen ? 1 + random_() % 255 : 0);
    });
  }

  // One gate in sixteen forgets everything, and one nothing; the others are of
  // all sizes. Heads are as retention has them.
  void make_decay() {
    const Extents& rows = k.tensor.size;
    Extents size = {rows[0], rows[1], rows[2], 1};
    if (case_.decay != Decay::kGates) size[0] = 1;
    if (case_.decay == Decay::kHeads) size[2] = 1;
    if (case_.decay == Decay::kShared) size[1] = 1;
    Extents stride = contiguous_strides(size);
    if (case_.strided) stride = {stride[0] * 2, stride[1] * 2, 2, 1};
    log_decay = Buffer(case_.dtype, size, stride);
    for_each_index(size, [&](const Extents& x) {
      const double u = uniform();
      double value = -std::exp(8 * uniform() - 6);
      if (u < 0.0625) value = -kInf;
      if (u > 0.9375) value = 0;
      if (case_.decay == Decay::kHeads) value = std::log1p(-0.2 * u);
      log_decay.set(x, value);
    });
  }

  Case case_;
  std::mt19937_64 random_;  // the same everywhere, unlike distributions
  std::vector<std::int64_t> q_offsets_, k_offsets_;
};

}  // namespace polyattn::test
