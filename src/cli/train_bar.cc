#include "cli/train_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>

namespace polyattn::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr double kBetweenDraws = 0.1;

}  // namespace

std::string status_text(const train::Status& status) {
  std::string text = fmt::format("step {}/{}  loss {:.3f}", status.step,
                                 status.steps, status.loss);
  if (status.last && status.last->bits_per_byte) {
    text += fmt::format("  {:.3f} bits/byte", *status.last->bits_per_byte);
  } else if (status.last && status.last->accuracy) {
    text += fmt::format("  accuracy {:.1f} %", 100 * *status.last->accuracy);
  }
  if (status.items_per_second > 0) {
    text += fmt::format("  {:.0f} {}/s", status.items_per_second, status.unit);
  }
  if (status.evaluating) text += "  evaluating";
  return text;
}

TrainBar::TrainBar(ProgressStyle style, int runs)
    : style_(style), runs_(runs) {}

TrainBar::~TrainBar() {
  if (style_ == ProgressStyle::kTerminal) std::fputs("\r\033[K", stderr);
}

void TrainBar::note(const std::string& text) {
  if (style_ == ProgressStyle::kNone) return;
  if (style_ == ProgressStyle::kTerminal) std::fputs("\r\033[K", stderr);
  fmt::print(stderr, "{}\n", text);
}

void TrainBar::begin_run(const std::string& label) {
  ++run_;
  label_ = runs_ > 1 ? fmt::format("[{}/{}] {}", run_, runs_, label) : label;
  printed_tenth_ = -1;
  first_step_ = -1;
  run_start_ = Clock::now();
}

void TrainBar::end_run(const std::string& outcome) {
  if (first_step_ >= 0) {
    done_seconds_ += seconds_since(run_start_);
    done_steps_ += static_cast<double>(last_step_ - first_step_);
  }
  note(fmt::format("{}  {}", label_, outcome));
}

double TrainBar::seconds_left(const train::Status& status) const {
  const double steps =
      done_steps_ + static_cast<double>(status.step - first_step_);
  const double seconds = done_seconds_ + seconds_since(run_start_);
  const auto left = static_cast<double>(status.steps) * (runs_ - run_) +
                    static_cast<double>(status.steps - status.step);
  return steps > 0 ? seconds / steps * left
                   : std::numeric_limits<double>::infinity();
}

void TrainBar::update(const train::Status& status) {
  if (first_step_ < 0) {
    first_step_ = std::max<std::int64_t>(0, status.step - 1);
  }
  last_step_ = status.step;
  if (style_ == ProgressStyle::kTerminal) {
    if (seconds_since(last_draw_) >= kBetweenDraws) draw(status);
  } else if (style_ == ProgressStyle::kLines && !status.evaluating) {
    const std::int64_t tenth = 10 * status.step / status.steps;
    if (tenth == printed_tenth_ || status.items_per_second == 0) return;
    printed_tenth_ = tenth;
    fmt::print(stderr, "{}  {}\n", label_, status_text(status));
  }
}

void TrainBar::draw(const train::Status& status) {
  last_draw_ = Clock::now();
  const double done =
      static_cast<double>(status.step) / static_cast<double>(status.steps);
  const double fraction = (run_ - 1 + done) / runs_;
  fmt::print(
      stderr, "\r{}\033[K",
      progress_line(fraction, seconds_left(status),
                    label_ + "  " + status_text(status), terminal_columns()));
  std::fflush(stderr);
}

}  // namespace polyattn::cli
