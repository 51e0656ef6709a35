// How the tasks of a call would lie on many workers. Which tasks there are
// follows from the shape alone, so that they can be timed one after the other
// on one core and laid out afterwards: what the machine itself would add, in
// caches and memory that workers share, is not in it.
#pragma once

#include <cstdint>
#include <vector>

#include "polyattn/parallel.h"

namespace polyattn::bench {

// Seconds of each task of a Parallel::run(), by number.
using TaskTimes = std::vector<double>;

// A call: its runs, one after the other, and what it does between them.
struct CallTimes {
  std::vector<TaskTimes> runs;
  double serial = 0;

  double work() const;  // of one worker
};

// One worker, which times every task by the processor time of its thread. Where
// the same call is made again, the least time of each task is kept.
class TimingParallel final : public Parallel {
 public:
  int workers() const override { return 1; }
  void run(std::int64_t tasks, TaskBody body) override;

  // Before each call. Throws std::logic_error if it had other tasks than the
  // one before.
  void begin_call();
  const std::vector<TaskTimes>& runs() const { return runs_; }
  // Seconds of this call inside run(), the clock's own included.
  double inside() const { return inside_; }

 private:
  std::vector<TaskTimes> runs_;
  double inside_ = 0;
  std::size_t next_ = 0;
};

// Until the last of these tasks ends, if each worker that is free takes the
// next one, as parallel.cc has it.
double makespan(const TaskTimes& tasks, int workers);

// The largest part of `workers` times the speed of one that the call can reach:
// work / (workers * time), with `barrier` seconds at the end of every run that
// has more than one task, if there is more than one worker.
double schedule_bound(const CallTimes& call, int workers, double barrier);

}  // namespace polyattn::bench
