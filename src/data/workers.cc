#include "data/workers.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace polyattn::data {
namespace {

class Loop {
 public:
  Loop(std::size_t count, const std::function<void(std::size_t)>& task)
      : end_(count), task_(task) {}

  // Indices are handed out in order, so that everything below the first
  // failure has been begun, and is finished, before the loop ends.
  void work() {
    while (true) {
      const std::size_t i = next_.fetch_add(1);
      if (i >= end_.load()) return;
      try {
        task_(i);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (i < end_.load()) {
          end_ = i;
          error_ = std::current_exception();
        }
      }
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> end_;
  const std::function<void(std::size_t)>& task_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

void run_parallel(std::size_t count,
                  const std::function<void(std::size_t)>& task,
                  std::size_t threads) {
  if (threads == 0) {
    threads = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  }
  Loop loop(count, task);
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(threads, count); ++i) {
      others.emplace_back([&loop] { loop.work(); });
    }
    loop.work();
  }
  loop.rethrow();
}

}  // namespace polyattn::data
