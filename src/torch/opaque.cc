// Attention as torch's compiler and transforms see it: one op forward and one
// backward that take the arguments as the user gave them. What it does with
// their shapes (broadcasting, heads, offsets) happens inside, so that a graph
// with symbolic shapes stays one graph. Python registers the shapes, the
// derivative and vmap (python/polyattn/_transforms.py).
//
// Outputs and gradients are laid out as [..., N, H, D], transposed, whatever
// the inputs are: a compiler must know it beforehand.
#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <torch/library.h>

#include "torch/call.h"
#include "torch/fused.h"

namespace polyattn {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;

// Rows outside of heads, in memory.
at::Tensor rows_outside(const at::Tensor& t) {
  return t.dim() < 3 ? t.contiguous()
                     : t.transpose(-3, -2).contiguous().transpose(-3, -2);
}

struct OpaqueCall {
  Call call;
  bool packed = false;

  at::Tensor to_four(const at::Tensor& t) const {
    if (packed) return t.transpose(0, 1).unsqueeze(0);
    return t.reshape({call.q.size(0), call.q.size(1), t.size(-2), t.size(-1)});
  }

  // [B, H or G, rows, width] as the user's tensor `like` has it, but for the
  // width; where that was broadcast, the sum.
  at::Tensor to_user(const at::Tensor& four, at::IntArrayRef like) const {
    if (packed) return four.squeeze(0).transpose(0, 1).contiguous();
    std::vector<std::int64_t> full = call.leading;
    if (!full.empty()) full.pop_back();
    full.insert(full.end(), {four.size(1), four.size(2), four.size(3)});
    std::vector<std::int64_t> wanted(like.begin(), like.end());
    wanted.back() = four.size(3);
    const at::Tensor t = rows_outside(four).reshape(full);
    return rows_outside(at::sum_to(t, wanted));
  }

  std::vector<std::int64_t> output_size() const {
    std::vector<std::int64_t> size = call.leading;
    size.insert(size.end(), {call.q.size(2), call.v.size(3)});
    return size;
  }
};

void check_kernels(const Call& call) {
  const at::ScalarType type = call.q.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kDouble ||
                  type == at::kBFloat16 || type == at::kHalf,
              "[attention] no kernel for type ", type);
}

OpaqueCall opaque_call(const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const OptionalTensor& cu_seqlens_q,
                       const OptionalTensor& cu_seqlens_k,
                       const AttentionOptions& options) {
  OpaqueCall result;
  result.packed = cu_seqlens_q.has_value();
  result.call =
      result.packed
          ? make_packed_call(q, k, v, {*cu_seqlens_q, *cu_seqlens_k}, options)
          : make_call(q, k, v, options);
  check_kernels(result.call);
  return result;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> opaque_forward(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const OptionalTensor& attn_mask, const OptionalTensor& bias,
    const OptionalTensor& coefficients, const OptionalTensor& cu_seqlens_q,
    const OptionalTensor& cu_seqlens_k, bool is_causal,
    c10::optional<double> scale, bool enable_gqa, c10::string_view activation,
    c10::string_view causal_alignment, c10::string_view path,
    at::IntArrayRef window_size, bool norms) {
  const OpaqueCall opaque = opaque_call(
      q, k, v, cu_seqlens_q, cu_seqlens_k,
      options_of(attn_mask, 0, is_causal, scale, enable_gqa, activation,
                 coefficients, causal_alignment, path, bias, window_size));
  const FusedResults results = forward_on_cpu(opaque.call, norms);
  std::vector<std::int64_t> norm_size = opaque.call.leading;
  norm_size.push_back(4);
  return {opaque.to_user(results.o,
                         opaque.packed ? q.sizes() : opaque.output_size()),
          results.rows,
          norms ? results.norms.reshape(norm_size) : results.norms};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> opaque_backward(
    const at::Tensor& d_output, const at::Tensor& q, const at::Tensor& k,
    const at::Tensor& v, const OptionalTensor& attn_mask,
    const OptionalTensor& bias, const OptionalTensor& coefficients,
    const OptionalTensor& cu_seqlens_q, const OptionalTensor& cu_seqlens_k,
    const at::Tensor& output, const at::Tensor& rows, bool is_causal,
    c10::optional<double> scale, bool enable_gqa, c10::string_view activation,
    c10::string_view causal_alignment, c10::string_view path,
    at::IntArrayRef window_size, std::array<bool, 4> wanted) {
  const OpaqueCall opaque = opaque_call(
      q, k, v, cu_seqlens_q, cu_seqlens_k,
      options_of(attn_mask, 0, is_causal, scale, enable_gqa, activation,
                 coefficients, causal_alignment, path, bias, window_size));
  // The kernels take the output for linear in the coefficients.
  TORCH_CHECK(
      !wanted[3] || opaque.call.config.activation.divisor != Divisor::kSum,
      "[attention_varlen] coefficients under `sum` have no gradient here: call "
      "polyattn.attention on each sequence");
  const FusedGradients gradients = backward_on_cpu(
      opaque.call,
      {opaque.to_four(d_output), opaque.to_four(output), rows.contiguous()},
      {wanted[0], wanted[1], wanted[2], wanted[3], /*bias=*/false,
       /*log_decay=*/false});
  const at::Tensor none = at::empty({0}, q.options());
  const auto finish = [&](std::size_t i, const at::Tensor& t) {
    return wanted[i] ? opaque.to_user(gradients[i], t.sizes()) : none;
  };
  return {finish(0, q), finish(1, k), finish(2, v),
          wanted[3] ? gradients[3] : none};
}

}  // namespace
}  // namespace polyattn

TORCH_LIBRARY_IMPL(polyattn, CPU, m) {
  m.impl("_opaque_forward", polyattn::opaque_forward);
  m.impl("_opaque_backward", polyattn::opaque_backward);
}
