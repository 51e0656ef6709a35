#include "train/prefetch.h"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace polyattn::train {
namespace {

constexpr std::size_t kAhead = 4;
// Batches of large images are kept until they have so many bytes, though one is
// always ready.
constexpr std::size_t kAheadBytes = std::size_t{1} << 28;

std::size_t bytes_of(const std::deque<Batch>& batches) {
  std::size_t sum = 0;
  for (const Batch& batch : batches) {
    if (batch.inputs.defined()) sum += batch.inputs.nbytes();
  }
  return sum;
}

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
      changed_.wait(lock, [&] {
        return stopping_ || ready_.empty() ||
               (ready_.size() < kAhead && bytes_of(ready_) < kAheadBytes);
      });
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
