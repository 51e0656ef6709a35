#include "nn/split_rows.h"

#include <torch/csrc/autograd/custom_function.h>

namespace polyattn::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The matrix of which these are all parts of the rows, in order; undefined if
// there is none.
torch::Tensor matrix_of(const variable_list& parts, std::int64_t width) {
  const torch::Tensor& first = parts.front();
  std::int64_t offset = first.defined() ? first.storage_offset() : 0;
  for (const torch::Tensor& part : parts) {
    if (!part.defined() || !part.is_alias_of(first) ||
        part.storage_offset() != offset) {
      return {};
    }
    std::int64_t stride = width;
    for (std::int64_t i = part.dim() - 2; i >= 0; --i) {
      if (part.stride(i) != stride) return {};
      stride *= part.size(i);
    }
    if (part.stride(-1) != 1) return {};
    offset += part.size(-1);
  }
  auto sizes = first.sizes().vec();
  auto strides = first.strides().vec();
  sizes.back() = width;
  return first.as_strided(sizes, strides, first.storage_offset());
}

class SplitRows : public torch::autograd::Function<SplitRows> {
 public:
  static variable_list forward(AutogradContext* ctx, const torch::Tensor& rows,
                               const std::vector<std::int64_t>& widths) {
    ctx->saved_data["width"] = rows.size(-1);
    return rows.split_with_sizes(widths, -1);
  }

  // Under create_graph the result is to be a function of the parts that torch
  // can differentiate again.
  static variable_list backward(AutogradContext* ctx,
                                const variable_list& parts) {
    torch::Tensor whole;
    if (!torch::GradMode::is_enabled()) {
      whole = matrix_of(parts, ctx->saved_data["width"].toInt());
    }
    return {whole.defined() ? whole : torch::cat(parts, -1), torch::Tensor()};
  }
};

}  // namespace

std::vector<torch::Tensor> split_rows(const torch::Tensor& rows,
                                      const std::vector<std::int64_t>& widths) {
  return SplitRows::apply(rows, widths);
}

}  // namespace polyattn::nn
