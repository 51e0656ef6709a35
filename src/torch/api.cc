// The C++ functions of polyattn/torch/attention.h: calls of the ops through
// torch's dispatcher, so that autocast and tracing see them.
#include "polyattn/torch/attention.h"
#include "torch/find_op.h"

namespace polyattn {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;

template <typename Result>
using Signature = Result(const at::Tensor&, const at::Tensor&,
                         const at::Tensor&, const OptionalTensor&, double, bool,
                         c10::optional<double>, bool, c10::string_view,
                         const OptionalTensor&, c10::string_view,
                         c10::string_view);

using Output = at::Tensor;
using OutputAndNorms =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

c10::string_view name_of(Path path) {
  if (path == Path::kAuto) return "auto";
  return path == Path::kDense ? "dense" : "linear";
}

template <typename Op>
auto call_op(const Op& op, const at::Tensor& q, const at::Tensor& k,
             const at::Tensor& v, const AttentionOptions& o) {
  const bool is_causal = o.causal() != Causal::kNone;
  return op.call(q, k, v, o.mask(), o.dropout(), is_causal, o.scale(), o.gqa(),
                 o.activation(), o.coefficients(),
                 o.causal() == Causal::kLast ? "lower_right" : "upper_left",
                 name_of(o.path()));
}

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v, const AttentionOptions& options) {
  static const auto op = find_op<Signature<Output>>("polyattn::attention");
  return call_op(op, q, k, v, options);
}

AttentionWithNorms attention_with_norms(const at::Tensor& q,
                                        const at::Tensor& k,
                                        const at::Tensor& v,
                                        const AttentionOptions& options) {
  static const auto op =
      find_op<Signature<OutputAndNorms>>("polyattn::attention_with_norms");
  auto [output, weight, jacobian, score, bad] = call_op(op, q, k, v, options);
  return {output, {weight, jacobian, score, bad}};
}

}  // namespace polyattn
