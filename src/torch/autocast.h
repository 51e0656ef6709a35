// Autocast on the CPU, under the names that torch had before 2.4 and has since.
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace polyattn {

#if TORCH_VERSION_MAJOR > 2 || \
    (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
inline at::ScalarType autocast_type() {
  return at::autocast::get_autocast_dtype(at::kCPU);
}
inline void set_autocast_type(at::ScalarType type) {
  at::autocast::set_autocast_dtype(at::kCPU, type);
}
inline void enable_autocast(bool on) {
  at::autocast::set_autocast_enabled(at::kCPU, on);
}
#else
inline at::ScalarType autocast_type() {
  return at::autocast::get_autocast_cpu_dtype();
}
inline void set_autocast_type(at::ScalarType type) {
  at::autocast::set_autocast_cpu_dtype(type);
}
inline void enable_autocast(bool on) { at::autocast::set_cpu_enabled(on); }
#endif

}  // namespace polyattn
