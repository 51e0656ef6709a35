#include "data/fetch_bar.h"

#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <utility>

#include "base/text_table.h"
#include "data/report.h"

namespace polyattn::data {
namespace {

using base::shortened;

// Often enough to look alive, seldom enough to cost nothing.
constexpr auto kInterval = std::chrono::milliseconds(100);

void rewrite(const std::string& line) {
  fmt::print(stderr, "\r{}\033[K", line);
  std::fflush(stderr);
}

}  // namespace

FetchBar::FetchBar(base::ProgressStyle style, std::string name)
    : style_(style), name_(std::move(name)) {}

FetchBar::~FetchBar() {
  if (style_ == base::ProgressStyle::kTerminal) std::fputs("\r\033[K", stderr);
}

void FetchBar::step(const std::string& what) {
  first_time_ = {};
  const std::string line = fmt::format("{}: {}", name_, what);
  if (style_ == base::ProgressStyle::kTerminal) {
    rewrite(shortened(line, base::terminal_columns() - 1));
  } else if (style_ == base::ProgressStyle::kLines) {
    fmt::print(stderr, "{}\n", line);
  }
}

void FetchBar::received(std::uint64_t bytes, std::uint64_t of) {
  if (style_ != base::ProgressStyle::kTerminal) return;
  const Clock::time_point now = Clock::now();
  // What an earlier download left says nothing about the speed of this one.
  if (first_time_ == Clock::time_point{}) {
    first_time_ = now;
    first_bytes_ = bytes;
  }
  if (now - shown_time_ < kInterval && bytes < of) return;
  shown_time_ = now;
  const std::chrono::duration<double> elapsed = now - first_time_;
  const auto gained = static_cast<double>(bytes - first_bytes_);
  const auto left = static_cast<double>(of > bytes ? of - bytes : 0);
  const double seconds = gained > 0 ? elapsed.count() * left / gained
                                    : std::numeric_limits<double>::infinity();
  const double fraction =
      of > 0 ? static_cast<double>(bytes) / static_cast<double>(of) : 1;
  const std::string label =
      fmt::format("{}: {} of {}", name_, size_text(bytes), size_text(of));
  rewrite(
      base::progress_line(fraction, seconds, label, base::terminal_columns()));
}

}  // namespace polyattn::data
