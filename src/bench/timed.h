// Something to time, in batches that are long enough for the clock and for the
// noise of the machine.
#pragma once

#include <functional>

namespace polyattn::bench {

double seconds_of(const std::function<void()>& call, int calls);

class Timed {
 public:
  // Calls it once or twice, to touch pages, wake threads and see how long it
  // takes.
  Timed(std::function<void()> call, double min_seconds);

  double seconds_per_call() const;

 private:
  std::function<void()> call_;
  int calls_ = 1;
};

}  // namespace polyattn::bench
