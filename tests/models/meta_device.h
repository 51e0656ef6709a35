// Models without their values: sizes are counted, no memory is filled.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>
#include <torch/types.h>

namespace polyattn::test {

constexpr c10::DispatchKey kMetaKey =
    c10::DispatchKey::TESTING_ONLY_GenericMode;

// Any op; values of f32 that it makes go to the meta device. Tables of another
// type are computed as ever: not all of their ops are there for meta tensors.
inline void call_on_meta(const c10::OperatorHandle& op,
                         torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard others(kMetaKey);
  const auto& arguments = op.schema().arguments();
  const auto values =
      stack->end() - static_cast<std::ptrdiff_t>(arguments.size());
  bool is_float = true;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = values[static_cast<std::ptrdiff_t>(i)];
    if (arguments[i].name() == "dtype" && value.isInt()) {
      is_float = value.toScalarType() == torch::kFloat;
    }
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (is_float && arguments[i].name() == "device") {
      values[static_cast<std::ptrdiff_t>(i)] = c10::Device(c10::kMeta);
    }
  }
  op.callBoxed(stack);
}

// While one lives, tensors that this thread makes are on the meta device.
class MetaDevice {
 public:
  MetaDevice() : library_(torch::Library::IMPL, "_", kMetaKey, __FILE__, 0) {
    library_.fallback(
        torch::CppFunction::makeFromBoxedFunction<&call_on_meta>());
  }

 private:
  torch::Library library_;
  c10::impl::IncludeDispatchKeyGuard guard_{kMetaKey};
};

// Of the parameters of a model, which is built and thrown away.
template <typename Model, typename Options>
std::int64_t parameter_count(const Options& options) {
  const MetaDevice meta;
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : Model(options)->parameters()) {
    TORCH_CHECK(parameter.is_meta(), "a parameter has memory");
    count += parameter.numel();
  }
  return count;
}

}  // namespace polyattn::test
