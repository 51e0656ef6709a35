// Makes batches ahead of time, on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "train/examples.h"

namespace polyattn::train {

class Prefetcher {
 public:
  // make(first), make(first + 1), ..., make(last - 1), called in this order on
  // one thread.
  Prefetcher(std::function<Batch(std::int64_t)> make, std::int64_t first,
             std::int64_t last);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The next batch. Throws what make() threw, and std::out_of_range after the
  // last.
  Batch next();

  // Seconds that next() has waited.
  double waited() const { return waited_; }

 private:
  void work(std::int64_t first, std::int64_t last);

  std::function<Batch(std::int64_t)> make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr error_;
  bool stopping_ = false;
  bool finished_ = false;
  double waited_ = 0;
  std::thread thread_;
};

}  // namespace polyattn::train
