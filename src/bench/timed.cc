#include "bench/timed.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace polyattn::bench {
double seconds_of(const std::function<void()>& call, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  return elapsed.count();
}

Timed::Timed(std::function<void()> call, double min_seconds)
    : call_(std::move(call)) {
  call_();
  const double once = std::max(seconds_of(call_, 1), 1e-9);
  calls_ = static_cast<int>(std::clamp(min_seconds / once + 1, 1.0, 1e6));
}

double Timed::seconds_per_call() const {
  return seconds_of(call_, calls_) / calls_;
}

}  // namespace polyattn::bench
