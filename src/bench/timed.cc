#include "bench/timed.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace polyattn::bench {

namespace {

double seconds_by(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double processor_seconds() { return seconds_by(CLOCK_PROCESS_CPUTIME_ID); }

double seconds_of(const std::function<void()>& call, int calls, Clock clock) {
  const clockid_t id =
      clock == Clock::kThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double start = seconds_by(id);
  for (int i = 0; i < calls; ++i) call();
  return seconds_by(id) - start;
}

Timed::Timed(std::function<void()> call, double min_seconds, Clock clock)
    : call_(std::move(call)), clock_(clock) {
  call_();
  const double once = std::max(seconds_of(call_, 1, clock_), 1e-9);
  calls_ = static_cast<int>(std::clamp(min_seconds / once + 1, 1.0, 1e6));
}

double Timed::milliseconds_per_call() const {
  return 1e3 * seconds_of(call_, calls_, clock_) / calls_;
}

Samples take_turns(const Calls& calls, const Rounds& rounds,
                   const std::function<void()>& between) {
  const Timed ours(calls.ours, rounds.min_seconds, rounds.clock);
  std::optional<Timed> baseline;
  if (calls.baseline)
    baseline.emplace(calls.baseline, rounds.min_seconds, rounds.clock);
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
