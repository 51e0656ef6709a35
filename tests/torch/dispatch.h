// A call as TorchScript and Python make it: through the schema of the op.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <unordered_map>

namespace polyattn::test {

// Arguments by position and by name, the rest by the defaults of the schema.
inline c10::Stack call_by_schema(
    const char* op, c10::Stack arguments,
    const std::unordered_map<std::string, c10::IValue>& named = {}) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(op, "");
  handle.schema().checkAndNormalizeInputs(arguments, named);
  handle.callBoxed(&arguments);
  return arguments;
}

}  // namespace polyattn::test
