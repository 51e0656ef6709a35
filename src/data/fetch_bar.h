// How far `polyattn data fetch` is, on standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/progress.h"
#include "data/download.h"

namespace polyattn::data {

class FetchBar : public FetchWatcher {
 public:
  FetchBar(base::ProgressStyle style, std::string name);
  ~FetchBar() override;

  void step(const std::string& what) override;
  void received(std::uint64_t bytes, std::uint64_t of) override;

 private:
  using Clock = std::chrono::steady_clock;

  base::ProgressStyle style_;
  std::string name_;
  // Of the step: what was there when the first bytes came, and when that was.
  std::uint64_t first_bytes_ = 0;
  Clock::time_point first_time_{};
  Clock::time_point shown_time_{};
};

}  // namespace polyattn::data
