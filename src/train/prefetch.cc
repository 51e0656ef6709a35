#include "train/prefetch.h"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace polyattn::train {
namespace {

constexpr std::size_t kAhead = 4;

}  // namespace

Prefetcher::Prefetcher(std::function<Batch(std::int64_t)> make,
                       std::int64_t first, std::int64_t last)
    : make_(std::move(make)),
      thread_([this, first, last] { work(first, last); }) {}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::work(std::int64_t first, std::int64_t last) {
  try {
    for (std::int64_t index = first; index < last; ++index) {
      Batch batch = make_(index);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || ready_.size() < kAhead; });
      if (stopping_) return;
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

Batch Prefetcher::next() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || finished_; });
  waited_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(error_);
    throw std::out_of_range("[train] there is no further batch");
  }
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

}  // namespace polyattn::train
