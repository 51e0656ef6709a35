// Under autocast on the CPU: q, k, v in the lower precision, as torch does it
// for its own attention. Kernels still compute in f32.
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>
#include <torch/version.h>

namespace polyattn {
namespace {

at::ScalarType lower_precision() {
#if TORCH_VERSION_MAJOR > 2 || \
    (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  return at::autocast::get_autocast_dtype(at::kCPU);
#else
  return at::autocast::get_autocast_cpu_dtype();
#endif
}

// Casts q, k and v on the stack and calls the op again, below autocast.
void cast_inputs(const c10::OperatorHandle& op, c10::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::AutocastCPU);
  const std::size_t count = op.schema().arguments().size();
  for (std::size_t i = 0; i < 3; ++i) {
    c10::IValue& value = (*stack)[stack->size() - count + i];
    value = at::autocast::cached_cast(lower_precision(), value.toTensor(),
                                      at::kCPU);
  }
  op.callBoxed(stack);
}

}  // namespace
}  // namespace polyattn

TORCH_LIBRARY_IMPL(polyattn, AutocastCPU, m) {
  m.impl("attention",
         torch::CppFunction::makeFromBoxedFunction<&polyattn::cast_inputs>());
  m.impl("attention_with_norms",
         torch::CppFunction::makeFromBoxedFunction<&polyattn::cast_inputs>());
}
