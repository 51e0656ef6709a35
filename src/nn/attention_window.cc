// nn::Attention in a sliding window: softmax alone, or beside a polynomial.
#include "polyattn/nn/attention.h"

namespace polyattn::nn {

Window AttentionImpl::window_of(Causal causal) const {
  const std::int64_t rows = options.window();
  if (rows == 0) return {};
  return causal == Causal::kNone ? Window{rows, rows} : Window{rows - 1, 0};
}

// Whether the activation itself keeps to the window.
bool AttentionImpl::slides() const {
  return options.window() > 0 && Activation::parse(options.activation()).kind ==
                                     ActivationKind::kSoftmax;
}

// `rest` is the output of the activation [B, H, N, D].
torch::Tensor AttentionImpl::with_window(const Heads& heads,
                                         const torch::Tensor& mask,
                                         Causal causal,
                                         const torch::Tensor& rest) {
  const auto call = call_options(mask, causal)
                        .activation("softmax")
                        .window(window_of(causal));
  const torch::Tensor near =
      other_op_ ? other_op_(heads.q, heads.k, heads.v, call)
                : polyattn::attention(heads.q, heads.k, heads.v, call);
  return near + (rest * hybrid_gate.view({-1, 1, 1})).to(near.scalar_type());
}

}  // namespace polyattn::nn
