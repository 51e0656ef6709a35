// Nystrom attention (of Nystromformer): rows and keys meet by way of landmarks,
// in time and memory linear in the number of rows.
//
//   q, k, v = heads of in_proj(x), zero where the mask hides the row
//   q~, k~  = means of N / m consecutive rows of q, of k        [B, H, m, D]
//   F = f(q k~^T / sqrt(D))     [B, H, N, m]
//   A = f(q~ k~^T / sqrt(D))    [B, H, m, m]
//   B = f(q~ k^T / sqrt(D))     [B, H, m, N], hidden keys left out
//   y = out_proj(F Z B v + conv(v)),   Z about the pseudo-inverse of A
//
// N of the formula is m in F and A, hidden rows or not, and the number of
// visible keys in B. With a divisor that depends on N alone the m cancel: what
// is approximated is the attention of that formula.
//
// A sequence whose length is no multiple of m is filled up with hidden rows.
// One of m rows or fewer, each its own landmark, is attended to as it is.
// docs/models.md says what is known of Z where f is not softmax.
//
// Parameters: in_proj_weight [3 C, C] with the rows of q, k and v in this
// order, in_proj_bias [3 C], out_proj.weight [C, C], out_proj.bias [C],
// conv_weight [H, 1, width, 1].
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "polyattn/nn/attention_base.h"

namespace polyattn::nn {

// What stands in for the N x N matrix.
struct NystromOptions {
  // m.
  TORCH_ARG(std::int64_t, landmarks) = 64;
  // The width of a convolution of v over the rows, one for each head, which is
  // added to the output: odd, or 0 for none.
  TORCH_ARG(std::int64_t, conv) = 35;
  // iterative: steps of Z <- Z (13 - A Z (15 - A Z (7 - A Z))) / 4 from a
  // multiple of A^T; exact: from singular values, slow, in f64.
  TORCH_ARG(std::string, inverse) = "iterative";
  TORCH_ARG(std::int64_t, iterations) = 6;
  // Of exact: singular values below this share of the largest count as zero.
  TORCH_ARG(double, rcond) = 1e-3;
  // What A^T is divided by at first: the largest column sum of |A| times the
  // largest row sum, of each matrix (matrix) or of all in the call (batch).
  // batch is what Nystromformer publishes, where row sums are 1; then the
  // result of an example depends on those beside it.
  TORCH_ARG(std::string, scaling) = "matrix";
};

struct NystromAttentionOptions {
  NystromAttentionOptions(std::int64_t dim, std::int64_t heads)
      : dim_(dim), heads_(heads) {}

  TORCH_ARG(std::int64_t, dim);
  TORCH_ARG(std::int64_t, heads);
  // A formula (polyattn/activation.h), in all three places.
  TORCH_ARG(std::string, activation) = "softmax";
  // Of the weights F and B, in training. Nystromformer has none.
  TORCH_ARG(double, dropout) = 0;
  // Of the output of out_proj, in training.
  TORCH_ARG(double, projection_dropout) = 0;
  TORCH_ARG(NystromOptions, nystrom) = NystromOptions();
};

class NystromAttentionImpl : public torch::nn::Cloneable<NystromAttentionImpl>,
                             public AttentionBase {
 public:
  explicit NystromAttentionImpl(const NystromAttentionOptions& options_);

  void reset() override;

  // [B, N, C] -> [B, N, C]. The mask is of keys: bool [B or 1, 1, 1, N], true
  // where the row is no padding.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask = {});

  // Norms that are watched, and matched: the weight's is that of F Z B, what
  // multiplies v beside the convolution; the Jacobian's that of (F, A, B) by
  // their scores; the largest score is of all three.
  std::string kind() const override { return "nystrom"; }
  const std::string& activation() const override {
    return options.activation();
  }
  std::int64_t heads() const override { return options.heads(); }
  std::vector<double> apply_gains(std::vector<double> gains) override;

  NystromAttentionOptions options;
  torch::Tensor in_proj_weight;
  torch::Tensor in_proj_bias;
  torch::nn::Linear out_proj{nullptr};
  torch::Tensor conv_weight;  // undefined without conv

 protected:
  torch::Tensor compute(const Heads& heads,
                        const polyattn::AttentionOptions& call) const override;
  AttentionWithNorms compute_with_norms(
      const Heads& heads,
      const polyattn::AttentionOptions& call) const override;

 private:
  struct Landmarks;
  struct Rows;

  Rows project(const torch::Tensor& x, const torch::Tensor& mask) const;
  Landmarks landmarks_of(const Heads& heads,
                         const polyattn::AttentionOptions& call) const;
  bool is_exact(const Heads& heads) const;
  torch::Tensor convolved(const torch::Tensor& v) const;
  std::int64_t head_dim() const { return options.dim() / options.heads(); }
};

TORCH_MODULE(NystromAttention);

}  // namespace polyattn::nn
