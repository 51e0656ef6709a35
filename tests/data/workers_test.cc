#include "data/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace polyattn::data::workers_test {
namespace {

TEST(Workers, DoEveryTaskOnce) {
  for (const std::size_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> done(count);
    run_parallel(count, [&](std::size_t i) { ++done[i]; });
    for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
  }
}

// Both tasks fail at about the same time, in either order; where there is but
// one core, the second is not begun.
TEST(Workers, ThrowWhatTheFirstTaskThrew) {
  const bool alone = std::thread::hardware_concurrency() < 2;
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::atomic<int> begun = alone ? 1 : 0;
    std::string error;
    try {
      run_parallel(2, [&](std::size_t i) {
        ++begun;
        while (begun < 2) std::this_thread::yield();
        throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& thrown) {
      error = thrown.what();
    }
    ASSERT_EQ(error, "0");
  }
}

}  // namespace
}  // namespace polyattn::data::workers_test
