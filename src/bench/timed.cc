#include "bench/timed.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

namespace polyattn::bench {

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

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

double Timed::milliseconds_per_call() const {
  return 1e3 * seconds_of(call_, calls_) / calls_;
}

Samples take_turns(const Calls& calls, const Rounds& rounds,
                   const std::function<void()>& between) {
  const Timed ours(calls.ours, rounds.min_seconds);
  std::optional<Timed> baseline;
  if (calls.baseline) baseline.emplace(calls.baseline, rounds.min_seconds);
  Samples samples;
  const auto time_ours = [&] {
    samples.ours.push_back(ours.milliseconds_per_call());
  };
  if (between) between();
  for (int i = 0; i < rounds.rounds; ++i) {
    // The order alternates, so that neither always follows the other.
    if (i % 2 == 0) time_ours();
    if (baseline) samples.baseline.push_back(baseline->milliseconds_per_call());
    if (i % 2 != 0) time_ours();
    if (between) between();
  }
  return samples;
}

}  // namespace polyattn::bench
