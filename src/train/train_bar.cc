#include "train/train_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>

namespace polyattn::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr double kBetweenDraws = 0.1;

std::string figure_text(const Status& status) {
  if (status.last && status.last->bits_per_byte) {
    return fmt::format("  {:.3f} bits/byte", *status.last->bits_per_byte);
  }
  if (status.last && status.last->accuracy) {
    return fmt::format("  accuracy {:.1f} %", 100 * *status.last->accuracy);
  }
  return "";
}

// For several at once: "x^3/sqrt(N) seed 1: loss 0.512  84.1 %".
std::string short_text(const std::string& label, const Status& status) {
  std::string text = fmt::format("{}: loss {:.3f}", label, status.loss);
  if (status.last && status.last->bits_per_byte) {
    text += fmt::format(" {:.2f} bits", *status.last->bits_per_byte);
  } else if (status.last && status.last->accuracy) {
    text += fmt::format(" {:.1f} %", 100 * *status.last->accuracy);
  }
  return text;
}

}  // namespace

std::string status_text(const Status& status) {
  std::string text = fmt::format("step {}/{}  loss {:.3f}", status.step,
                                 status.steps, status.loss);
  text += figure_text(status);
  if (status.items_per_second > 0) {
    text += fmt::format("  {:.0f} {}/s", status.items_per_second, status.unit);
  }
  if (status.evaluating) text += "  evaluating";
  return text;
}

TrainBar::TrainBar(base::ProgressStyle style, std::size_t runs)
    : style_(style), runs_(runs), start_(Clock::now()) {}

TrainBar::~TrainBar() {
  if (style_ == base::ProgressStyle::kTerminal) std::fputs("\r\033[K", stderr);
}

void TrainBar::note(const std::string& text) {
  if (style_ == base::ProgressStyle::kNone) return;
  if (style_ == base::ProgressStyle::kTerminal) std::fputs("\r\033[K", stderr);
  fmt::print(stderr, "{}\n", text);
}

std::string TrainBar::prefix(std::size_t run) const {
  const std::string& label = active_.at(run).label;
  return runs_ > 1 ? fmt::format("[{}/{}] {}", run + 1, runs_, label) : label;
}

void TrainBar::begin_run(std::size_t run, const std::string& activation,
                         std::int64_t seed) {
  Active active;
  active.label = fmt::format("{} seed {}", activation, seed);
  active_[run] = active;
}

void TrainBar::end_run(std::size_t run, const std::string& outcome) {
  const Active& active = active_.at(run);
  if (active.first_step >= 0) {
    steps_of_ended_ +=
        static_cast<double>(active.status.step - active.first_step);
  }
  note(fmt::format("{}  {}", prefix(run), outcome));
  active_.erase(run);
  ++ended_;
}

// All runs have as many steps. Those that had ended before took no time.
double TrainBar::seconds_left() const {
  double made = steps_of_ended_;
  double left = 0;
  double steps = 0;
  for (const auto& [run, active] : active_) {
    if (active.first_step < 0) continue;
    made += static_cast<double>(active.status.step - active.first_step);
    left += static_cast<double>(active.status.steps - active.status.step);
    steps = static_cast<double>(active.status.steps);
  }
  left += steps * static_cast<double>(runs_ - ended_ - active_.size());
  return made > 0 ? seconds_since(start_) / made * left
                  : std::numeric_limits<double>::infinity();
}

void TrainBar::update(std::size_t run, const Status& status) {
  Active& active = active_.at(run);
  if (active.first_step < 0) {
    active.first_step = std::max<std::int64_t>(0, status.step - 1);
  }
  active.status = status;
  if (style_ == base::ProgressStyle::kTerminal) {
    if (seconds_since(last_draw_) >= kBetweenDraws) draw();
  } else if (style_ == base::ProgressStyle::kLines && !status.evaluating) {
    const std::int64_t tenth = 10 * status.step / status.steps;
    if (tenth == active.printed_tenth || status.items_per_second == 0) return;
    active.printed_tenth = tenth;
    fmt::print(stderr, "{}  {}\n", prefix(run), status_text(status));
  }
}

void TrainBar::draw() {
  last_draw_ = Clock::now();
  double done = static_cast<double>(ended_);
  double speed = 0;
  std::string text;
  std::string unit;
  for (const auto& [run, active] : active_) {
    if (active.first_step < 0) continue;
    done += static_cast<double>(active.status.step) /
            static_cast<double>(active.status.steps);
    speed += active.status.items_per_second;
    unit = active.status.unit;
    text +=
        (text.empty() ? "" : "  ") + short_text(active.label, active.status);
  }
  if (runs_ == 1 && !active_.empty()) {
    text = status_text(active_.begin()->second.status);
  } else {
    text = fmt::format("{}/{} runs  {:.0f} {}/s  {}", ended_, runs_, speed,
                       unit, text);
  }
  fmt::print(
      stderr, "\r{}\033[K",
      base::progress_line(done / static_cast<double>(runs_), seconds_left(),
                          text, base::terminal_columns()));
  std::fflush(stderr);
}

}  // namespace polyattn::train
