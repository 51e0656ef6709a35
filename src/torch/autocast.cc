// Under autocast on the CPU: q, k, v in the lower precision, as torch does it
// for its own attention. Kernels still compute in f32.
#include "torch/autocast.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace polyattn {
namespace {

// Casts q, k and v on the stack and calls the op again, below autocast.
void cast_inputs(const c10::OperatorHandle& op, c10::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::AutocastCPU);
  const std::size_t count = op.schema().arguments().size();
  for (std::size_t i = 0; i < 3; ++i) {
    c10::IValue& value = (*stack)[stack->size() - count + i];
    value =
        at::autocast::cached_cast(autocast_type(), value.toTensor(), at::kCPU);
  }
  op.callBoxed(stack);
}

}  // namespace
}  // namespace polyattn

TORCH_LIBRARY_IMPL(polyattn, AutocastCPU, m) {
  for (const char* name : {"attention", "attention_with_norms",
                           "attention_varlen", "_opaque_forward"}) {
    m.impl(name,
           torch::CppFunction::makeFromBoxedFunction<&polyattn::cast_inputs>());
  }
}
