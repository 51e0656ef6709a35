// Between torch tensors and the buffers of the core's tests; random tensors;
// comparisons.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "core/error_bound.h"
#include "core/random_inputs.h"
#include "polyattn/torch/attention.h"

namespace polyattn::test {

// A wrong formula is wrong in the first digits. In f64, 2^-36 of the largest
// element leaves room for 2^17 roundings: a thousand additions, and a factor of
// a hundred by which the chain of operations may amplify them.
inline constexpr double kF64Close = 0x1p-36;

at::ScalarType scalar_type(DType dtype);

// The buffer as a tensor that shares its memory.
at::Tensor tensor_of(const Buffer& buffer);

// A dense copy of [B, H, N, D].
Buffer buffer_of(const at::Tensor& tensor);

// A dense copy with the same values and no graph.
inline at::Tensor leaf(const at::Tensor& t) {
  return t.detach().clone(at::MemoryFormat::Contiguous).requires_grad_(true);
}

// The options that the case asks for; bias and mask are those of the instance,
// whose memory they share. A mask holds 0 and 1 afterwards, as bools must.
AttentionOptions options_of(const Case& c, Instance& instance);

// Numbers that depend on the seed alone.
class Random {
 public:
  explicit Random(std::uint64_t seed)
      : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {}

  at::Tensor normal(at::IntArrayRef sizes, at::ScalarType type = at::kDouble) {
    return at::randn(sizes, generator_, at::kDouble).to(type);
  }
  // true with this probability
  at::Tensor bools(at::IntArrayRef sizes, double probability) {
    return at::rand(sizes, generator_, at::kDouble).lt(probability);
  }

 private:
  at::Generator generator_;
};

// The same size, and |got - want| at most `relative` times the largest |want|,
// or times 1 if that is smaller: inputs are of that size, and what they cancel
// to is no measure of the roundings.
void expect_near(const char* what, const at::Tensor& got,
                 const at::Tensor& want, double relative = kF64Close);

// The same size, type and bits.
void expect_same_bits(const char* what, const at::Tensor& got,
                      const at::Tensor& want);

// Of sum(weights . outputs) by `inputs`; zeros where there is none.
std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& outputs,
                                  const std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& weights,
                                  bool create_graph = false);

}  // namespace polyattn::test
