// What the core refuses, or gives up, as torch's error.
#pragma once

#include <c10/util/Exception.h>

#include <stdexcept>

namespace polyattn {

template <typename F>
void with_torch_errors(F&& f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, error.what());
  } catch (const std::overflow_error& error) {
    TORCH_CHECK(false, error.what());
  }
}

}  // namespace polyattn
