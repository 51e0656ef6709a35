// The cutting of arrays into tasks.
#include "polyattn/gelu.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "core/kernels/gelu.h"

namespace polyattn {
namespace {

// Elements in a task: large against the cost of handing it out.
constexpr std::int64_t kTask = 16384;

void check_lengths(const char* op, const char* name, std::size_t length,
                   std::size_t expected) {
  if (length == expected) return;
  throw std::invalid_argument("[" + std::string(op) + "] " + name + " length " +
                              std::to_string(length) + " != x length " +
                              std::to_string(expected));
}

// body(first element, number of elements)
template <typename F>
void in_tasks(std::size_t length, Parallel& parallel, const F& body) {
  const auto n = static_cast<std::int64_t>(length);
  parallel.run((n + kTask - 1) / kTask, [&](std::int64_t task, int) {
    const std::int64_t first = task * kTask;
    body(static_cast<std::size_t>(first),
         static_cast<std::size_t>(std::min(kTask, n - first)));
  });
}

}  // namespace

void gelu_forward(std::span<const float> x, std::span<float> y,
                  Parallel& parallel) {
  check_lengths("gelu_forward", "y", y.size(), x.size());
  in_tasks(x.size(), parallel, [&](std::size_t first, std::size_t count) {
    gelu_f32(x.data() + first, y.data() + first, count);
  });
}

void gelu_backward(std::span<const float> x, std::span<const float> dy,
                   std::span<float> dx, Parallel& parallel) {
  check_lengths("gelu_backward", "dy", dy.size(), x.size());
  check_lengths("gelu_backward", "dx", dx.size(), x.size());
  in_tasks(x.size(), parallel, [&](std::size_t first, std::size_t count) {
    gelu_gradient_f32(x.data() + first, dy.data() + first, dx.data() + first,
                      count);
  });
}

}  // namespace polyattn
