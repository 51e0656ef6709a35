// Timing, in batches that are long enough for the clock and for the noise of
// the machine.
//
// Machines are shared and their clocks move, so only what was measured side by
// side is compared: ours and the baseline take turns, a ratio is formed inside
// its round, and the median over the rounds is reported with its quartiles.
#pragma once

#include <functional>

#include "bench/row.h"

namespace polyattn::bench {

// That the threads of this process have used so far.
double processor_seconds();

// The time on the clock; or that of the processor in this thread, to which
// other programs on the machine do not add, of calls that use no other thread.
enum class Clock { kWall, kThread };

// Of calls with so many threads.
inline Clock clock_for(int threads) {
  return threads == 1 ? Clock::kThread : Clock::kWall;
}

double seconds_of(const std::function<void()>& call, int calls,
                  Clock clock = Clock::kWall);

class Timed {
 public:
  // Calls it once or twice, to touch pages, wake threads and see how long it
  // takes.
  Timed(std::function<void()> call, double min_seconds,
        Clock clock = Clock::kWall);

  double milliseconds_per_call() const;

 private:
  std::function<void()> call_;
  Clock clock_;
  int calls_ = 1;
};

struct Calls {
  std::function<void()> ours;
  std::function<void()> baseline = {};  // may be empty
};

struct Rounds {
  int rounds = 7;
  double min_seconds = 0.05;  // what a round spends in each, at least
  Clock clock = Clock::kWall;
};

// Milliseconds of a call. `between` is called before each round and after the
// last one.
Samples take_turns(const Calls& calls, const Rounds& rounds,
                   const std::function<void()>& between = {});

}  // namespace polyattn::bench
