// Attention with any activation, dense and exact, forward and backward:
//
//   s_ij = scale * q_i . k_j + bias_ij      for the keys j that row i may see
//   A_ij = weight(s_ij) / divisor_i         activation.h
//   o_i  = sum_j A_ij v_j
//
// Letters: B batch, H query heads, G key/value heads (H a multiple of G; query
// head h uses key head h / (H/G)), N queries, M keys, D width of q and k,
// E width of v. No N x M matrix is ever in memory.
//
// What a row may see. A mask entry of zero, or -inf in the bias, removes the
// key from the row; so do causality and a window. n, the number of keys left,
// is what sqrt(N) and N mean in a formula. A row that sees no key gives zeros.
// The removed weights are exact zeros, but a removed key may still take part in
// arithmetic: 0 times NaN is NaN, so k and v should be finite there.
//
// Keys that no row of a block may see cost nothing: with a window, time and
// memory are linear in N for every activation.
//
// A polynomial also has a path in linear time (Path), where all rows of a
// sequence see the same keys apart from causality and there is no bias; `sum`
// then needs weights of one sign. It gives no statistics: a call that wants
// them is dense.
//
// Decay (log_decay) fades what lies behind, for a polynomial under causality:
//
//   A_ij = fade_ij weight(s_ij) / divisor_i
//   fade_ij = the product of the factors of the keys after j that row i sees
//
// Then n_i is the sum of fade_ij^2 over the keys that the row sees, so that
// sqrt(N) does not fade the row as a whole, and `sum` adds up fade |weight|. A
// factor of 0 is a reset: nothing before that key is seen from there on. A key
// that the mask removes is gone with its factor. Such a call takes the linear
// path, whatever its length; a short sequence is one chunk there, without
// features. docs/linear.md derives it.
//
// Errors throw std::invalid_argument with a message that names the operation,
// the argument and both values; nothing has been written then. Features may
// overflow where scores do not: with Path::kAuto the call is then repeated on
// the dense path, with Path::kLinear it throws std::overflow_error. That is for
// finite inputs: an inf or NaN among them comes out in linear time too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "polyattn/activation.h"
#include "polyattn/parallel.h"
#include "polyattn/tensor.h"

namespace polyattn {

// Which keys row i of N sees among M under causality.
enum class Causal : std::uint8_t {
  kNone,   // all
  kFirst,  // j <= i: the first query is aligned with the first key
  kLast,   // j <= i + M - N: the last query is aligned with the last key
};

const char* name_of(Causal causal);  // "none", "first", "last"

// A sliding window: row i sees no more than `left` keys before the one at its
// own position and `right` keys behind it; -1 is no limit, {0, 0} that key
// alone. The row's own position is that of causality: i, or i + M - N with
// Causal::kLast. There need not be a key. Under causality `right` has no say.
struct Window {
  std::int64_t left = -1;
  std::int64_t right = -1;

  bool operator==(const Window&) const = default;
};

struct AttentionInputs {
  ConstTensor q;  // [B, H, N, D]
  ConstTensor k;  // [B, G, M, D]
  ConstTensor v;  // [B, G, M, E]
  // Added to the scores: [B, H, N, M], where a size of 1 is repeated. So is the
  // first if it is another divisor of B: example b uses entry b mod size[0].
  std::optional<ConstTensor> bias = {};
  // Zero removes the key: repeated as the bias is.
  std::optional<ConstMask> mask = {};
  // Ragged batch: B + 1 increasing row numbers, from 0 to the total. Then q is
  // [1, H, total, D], k and v are [1, G, total, .], and sequence b has rows
  // q_offsets[b] .. q_offsets[b + 1] - 1. Sizes of bias and mask are those of
  // the longest sequence. Both are given, or neither.
  std::span<const std::int64_t> q_offsets = {};
  std::span<const std::int64_t> k_offsets = {};
  // The logarithms of the factors of decay, none above 0 and -inf for a factor
  // of 0: [B, G, M, 1] ([1, G, total, 1] if ragged), where a size of 1 is
  // repeated.
  std::optional<ConstTensor> log_decay = {};
};

// How the sums over keys are made. Both are exact; they differ in time and in
// rounding. plan.h says which one is chosen, and why.
enum class Path : std::uint8_t {
  kAuto,    // whichever is expected to be faster
  kDense,   // all pairs of a query and a key: time N * M
  kLinear,  // through the features of a polynomial: time (N + M) * features
};

const char* name_of(Path path);  // "auto", "dense", "linear"

// Sets each weight to zero with probability p, after the division of its row,
// and divides the others by 1 - p. Which ones is a function of seed, example,
// head, query and key alone: no matter how many threads, what instruction set,
// and the same in backward. The statistics are those of the weights before.
struct Dropout {
  double p = 0;  // from 0 to below 1
  std::uint64_t seed = 0;
  // Where the heads of one matrix are computed by several calls: the number of
  // this call's first one.
  std::int64_t first_head = 0;
};

struct AttentionConfig {
  Activation activation = {};
  std::optional<double> scale = {};  // default: 1/sqrt(D)
  Causal causal = Causal::kNone;
  DType compute = DType::kF32;  // kF32 or kF64
  Path path = Path::kAuto;
  // Linear path: tokens that are worked on together, rounded up to a multiple
  // of 48. 0: chosen by the shape.
  std::int64_t chunk = 0;
  Dropout dropout = {};  // dense path alone
  Window window = {};    // dense path alone
};

// What backward needs to know of a row: A_ij = scale * weight(s_ij - shift).
// softmax: shift = max_j s_ij, scale = 1/sum. sigmoid: shift = log n. A row
// that sees no key, or whose `sum` is zero: scale = 0.
struct RowState {
  double shift = 0;
  double scale = 0;
};

// Of the attention matrix of one (batch, head), from the same pass.
struct AttentionStats {
  double weight_sq = 0;         // ||A||_F^2
  double jacobian_sq = 0;       // ||dA/dS||_F^2
  double max_abs_score = 0;     // largest |s_ij| that was seen by its row
  std::int64_t non_finite = 0;  // elements of the output that are inf or NaN
};

struct AttentionResults {
  Tensor o;  // [B, H, N, E]
  // Empty, or one for each row of o: [B, H, N], dense ([1, H, total] if
  // ragged).
  std::span<RowState> rows = {};
  // Empty, or one for each (batch, head): [B, H], dense.
  std::span<AttentionStats> stats = {};
};

struct AttentionBackwardInputs {
  ConstTensor d_o;  // [B, H, N, E]
  // As forward gave it; read only for softmax, for /sum and for d_log_decay.
  ConstTensor o;
  std::span<const RowState> rows;  // as forward gave it
};

// Those that are absent are not computed.
struct AttentionGradients {
  std::optional<Tensor> dq = {};  // as q
  std::optional<Tensor> dk = {};  // as k
  std::optional<Tensor> dv = {};  // as v
  // As the bias, with a stride of 1 along the keys: the sum over all that share
  // an entry.
  std::optional<Tensor> d_bias = {};
  // As log_decay, with a stride of 1 along the last dimension: the sum over all
  // that share an entry. Zero where the factor is 0.
  std::optional<Tensor> d_log_decay = {};
};

// Bytes of workspace for a call with this many workers. Any alignment will do.
std::size_t attention_forward_workspace(const AttentionInputs& inputs,
                                        const AttentionConfig& config,
                                        int workers);
std::size_t attention_backward_workspace(const AttentionInputs& inputs,
                                         const AttentionConfig& config,
                                         int workers, bool d_bias = false);

// Return the path that gave the results: kDense or kLinear.
Path attention_forward(const AttentionInputs& inputs,
                       const AttentionConfig& config,
                       const AttentionResults& results,
                       std::span<std::byte> workspace, Parallel& parallel);
Path attention_backward(const AttentionInputs& inputs,
                        const AttentionConfig& config,
                        const AttentionBackwardInputs& backward,
                        const AttentionGradients& gradients,
                        std::span<std::byte> workspace, Parallel& parallel);

// The same with a workspace of their own, and with DefaultParallel too. A
// thread keeps the last one for its next call, if it has at most 64 MB.
Path attention_forward(const AttentionInputs& inputs,
                       const AttentionConfig& config,
                       const AttentionResults& results, Parallel& parallel);
Path attention_backward(const AttentionInputs& inputs,
                        const AttentionConfig& config,
                        const AttentionBackwardInputs& backward,
                        const AttentionGradients& gradients,
                        Parallel& parallel);
Path attention_forward(const AttentionInputs& inputs,
                       const AttentionConfig& config,
                       const AttentionResults& results);
Path attention_backward(const AttentionInputs& inputs,
                        const AttentionConfig& config,
                        const AttentionBackwardInputs& backward,
                        const AttentionGradients& gradients);

}  // namespace polyattn
