#include "base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "base/text_table.h"

namespace polyattn::base {
namespace {

constexpr int kBarWidth = 20;

}  // namespace

ProgressStyle progress_style(bool json) {
  if (::isatty(STDERR_FILENO) != 0) return ProgressStyle::kTerminal;
  return json ? ProgressStyle::kNone : ProgressStyle::kLines;
}

int terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : 80;
}

std::string progress_line(double fraction, double seconds_left,
                          std::string_view label, int columns) {
  const int filled =
      std::clamp(static_cast<int>(fraction * kBarWidth), 0, kBarWidth);
  std::string left = "-:--";
  if (std::isfinite(seconds_left)) {
    const auto seconds = static_cast<std::int64_t>(std::ceil(seconds_left));
    left = fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  }
  const std::string line =
      fmt::format("[{:#<{}}{:-<{}}] {:3.0f}% {} left  {}", "", filled, "",
                  kBarWidth - filled, 100 * fraction, left, label);
  return shortened(line, columns - 1);
}

Progress::Progress(ProgressStyle style, int steps, double total_effort)
    : style_(style),
      steps_(steps),
      total_effort_(total_effort),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (style_ == ProgressStyle::kTerminal) std::fputs("\r\033[K", stderr);
}

void Progress::step(std::string_view label, double effort) {
  ++step_;
  effort_done_ += effort_now_;
  effort_now_ = effort;
  if (style_ == ProgressStyle::kLines) {
    fmt::print(stderr, "[{}/{}] {}\n", step_, steps_, label);
  } else if (style_ == ProgressStyle::kTerminal) {
    const std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - start_;
    const double fraction = effort_done_ / total_effort_;
    const double left = elapsed.count() * (1 - fraction) / fraction;
    fmt::print(stderr, "\r{}\033[K",
               progress_line(fraction, left, label, terminal_columns()));
    std::fflush(stderr);
  }
}

}  // namespace polyattn::base
