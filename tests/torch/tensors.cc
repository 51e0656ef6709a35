#include "torch/tensors.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstring>

namespace polyattn::test {
namespace {

at::Tensor shared(void* data, const Extents& size, const Extents& stride,
                  at::ScalarType type) {
  // torch takes no null pointer, which a buffer without elements has.
  if (element_count(size) == 0) return at::empty(size, type);
  return torch::from_blob(data, size, stride, type);
}

}  // namespace

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return at::kFloat;
    case DType::kF64:
      return at::kDouble;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kF16:
      return at::kHalf;
  }
  return at::kFloat;
}

at::Tensor tensor_of(const Buffer& buffer) {
  const Tensor& t = buffer.tensor;
  return shared(t.data, t.size, t.stride, scalar_type(t.dtype));
}

Buffer buffer_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().contiguous();
  DType dtype = DType::kF32;
  for (const DType each : {DType::kF64, DType::kBF16, DType::kF16}) {
    if (scalar_type(each) == dense.scalar_type()) dtype = each;
  }
  const Extents size = {dense.size(0), dense.size(1), dense.size(2),
                        dense.size(3)};
  Buffer buffer(dtype, size, contiguous_strides(size));
  if (!buffer.bytes.empty()) {
    std::memcpy(buffer.bytes.data(), dense.data_ptr(), buffer.bytes.size());
  }
  return buffer;
}

AttentionOptions options_of(const Case& c, Instance& instance) {
  AttentionOptions options;
  options.activation(c.formula)
      .causal(c.causal)
      .gqa(c.heads != c.kv_heads)
      .path(c.path);
  if (c.scale) options.scale(*c.scale);
  if (c.bias != Extra::kAbsent) options.mask(tensor_of(instance.bias));
  if (c.mask != Extra::kAbsent) {
    for (std::uint8_t& seen : instance.mask) seen = seen != 0;
    const ConstMask mask = *instance.inputs().mask;
    options.mask(
        shared(instance.mask.data(), mask.size, mask.stride, at::kBool));
  }
  return options;
}

void expect_near(const char* what, const at::Tensor& got,
                 const at::Tensor& want, double relative) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  if (want.numel() == 0) return;
  const at::Tensor exact = want.detach().to(at::kDouble);
  const at::Tensor off = (got.detach().to(at::kDouble) - exact).abs();
  const double size = std::max(exact.abs().max().item<double>(), 1.0);
  const double worst = off.max().item<double>();
  EXPECT_TRUE(worst <= relative * size)
      << what << " is off by " << worst << ", more than " << relative << " of "
      << size;
}

void expect_same_bits(const char* what, const at::Tensor& got,
                      const at::Tensor& want) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  ASSERT_EQ(got.scalar_type(), want.scalar_type()) << what;
  const at::Tensor a = got.detach().contiguous(),
                   b = want.detach().contiguous();
  if (a.nbytes() == 0) return;
  EXPECT_EQ(std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()), 0)
      << what << " differs, by at most " << (a - b).abs().max();
}

std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& outputs,
                                  const std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& weights,
                                  bool create_graph) {
  std::vector<at::Tensor> result = torch::autograd::grad(
      outputs, inputs, weights, /*retain_graph=*/true, create_graph,
      /*allow_unused=*/true);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!result[i].defined()) result[i] = at::zeros_like(inputs[i]);
  }
  return result;
}

}  // namespace polyattn::test
