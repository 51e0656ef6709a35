// A Parallel on std::thread, as hard on the kernels as it can be: tasks are
// handed out one at a time to whoever asks, in a shuffled order if so wished.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "polyattn/parallel.h"

namespace polyattn::test {

enum class TaskOrder { kAscending, kShuffled };

class ThreadParallel final : public Parallel {
 public:
  explicit ThreadParallel(int workers, TaskOrder order = TaskOrder::kAscending)
      : workers_(workers), order_(order) {}

  int workers() const override { return workers_; }

  void run(std::int64_t tasks, TaskBody body) override {
    std::vector<std::int64_t> queue(static_cast<std::size_t>(tasks));
    std::iota(queue.begin(), queue.end(), 0);
    if (order_ == TaskOrder::kShuffled)
      std::shuffle(queue.begin(), queue.end(), random_);
    std::atomic<std::size_t> next = 0;
    std::exception_ptr error;
    std::mutex error_mutex;
    const auto work = [&](int worker) {
      for (std::size_t i = next++; i < queue.size(); i = next++) {
        try {
          body(queue[i], worker);
        } catch (...) {
          const std::lock_guard lock(error_mutex);
          if (!error) error = std::current_exception();
        }
      }
    };
    std::vector<std::thread> threads;
    for (int worker = 1; worker < workers_; ++worker)
      threads.emplace_back(work, worker);
    work(0);
    for (std::thread& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
  }

 private:
  int workers_;
  TaskOrder order_;
  std::mt19937_64 random_;
};

}  // namespace polyattn::test
