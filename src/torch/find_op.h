// An op by its name, ready to be called through torch's dispatcher.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace polyattn {

template <typename Signature>
c10::TypedOperatorHandle<Signature> find_op(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Signature>();
}

}  // namespace polyattn
