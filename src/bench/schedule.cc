#include "bench/schedule.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <stdexcept>

#include "bench/timed.h"

namespace polyattn::bench {

double CallTimes::work() const {
  double total = serial;
  for (const TaskTimes& run : runs)
    total = std::accumulate(run.begin(), run.end(), total);
  return total;
}

void TimingParallel::begin_call() {
  if (next_ != runs_.size())
    throw std::logic_error("[bench] a call with fewer runs than the last one");
  next_ = 0;
  inside_ = 0;
}

void TimingParallel::run(std::int64_t tasks, TaskBody body) {
  const auto count = static_cast<std::size_t>(tasks);
  if (next_ == runs_.size()) runs_.emplace_back(count, 1e300);
  TaskTimes& times = runs_[next_++];
  if (times.size() != count)
    throw std::logic_error("[bench] a call with other tasks than the last one");
  const auto all = [&] {
    for (std::int64_t task = 0; task < tasks; ++task) {
      double& least = times[static_cast<std::size_t>(task)];
      least = std::min(least,
                       seconds_of([&] { body(task, 0); }, 1, Clock::kThread));
    }
  };
  inside_ += seconds_of(all, 1, Clock::kThread);
}

double makespan(const TaskTimes& tasks, int workers) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int i = 0; i < workers; ++i) free_at.push(0);
  double end = 0;
  for (const double seconds : tasks) {
    const double done = free_at.top() + seconds;
    free_at.pop();
    free_at.push(done);
    end = std::max(end, done);
  }
  return end;
}

double schedule_bound(const CallTimes& call, int workers, double barrier) {
  double time = call.serial;
  for (const TaskTimes& run : call.runs) {
    time += makespan(run, workers);
    if (workers > 1 && run.size() > 1) time += barrier;
  }
  return time > 0 ? call.work() / (workers * time) : 1;
}

}  // namespace polyattn::bench
