#include "train/train_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace polyattn::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr double kBetweenDraws = 0.1;

// Of an equation it becomes small.
std::string loss_text(double loss) {
  return loss != 0 && std::abs(loss) < 0.01 ? fmt::format("{:.2e}", loss)
                                            : fmt::format("{:.3f}", loss);
}

// For several at once: "x^3/sqrt(N) seed 1: loss 0.512  84.1 %".
std::string short_text(const std::string& label, const Progress& progress) {
  std::string text =
      fmt::format("{}: loss {}", label, loss_text(progress.loss()));
  const auto result = progress.info.result.value_or(run::Evaluation());
  if (result.bits_per_byte) {
    text += fmt::format(" {:.2f} bits", *result.bits_per_byte);
  } else if (result.accuracy) {
    text += fmt::format(" {:.1f} %", 100 * *result.accuracy);
  } else if (result.relative_l2) {
    text += fmt::format(" relative L2 {:.4f}", *result.relative_l2);
  }
  return text;
}

}  // namespace

std::string progress_text(const Progress& progress) {
  const run::RunInfo& info = progress.info;
  std::string text = fmt::format("step {}/{}  loss {}", info.step, info.steps,
                                 loss_text(progress.loss()));
  const auto result = info.result.value_or(run::Evaluation());
  if (result.bits_per_byte) {
    text += fmt::format("  {:.3f} bits/byte", *result.bits_per_byte);
  } else if (result.accuracy) {
    text += fmt::format("  accuracy {:.1f} %", 100 * *result.accuracy);
  } else if (result.relative_l2) {
    text += fmt::format("  relative L2 {:.4f}", *result.relative_l2);
  }
  if (progress.items_per_second > 0) {
    text +=
        fmt::format("  {:.0f} {}/s", progress.items_per_second, progress.unit);
  }
  if (progress.evaluating) text += "  evaluating";
  return text;
}

TrainBar::TrainBar(base::ProgressStyle style, std::size_t runs,
                   std::string phase)
    : style_(style),
      runs_(runs),
      phase_(phase.empty() ? "" : phase + " "),
      start_(Clock::now()) {}

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
  return runs_ > 1 ? fmt::format("{}[{}/{}] {}", phase_, run + 1, runs_, label)
                   : phase_ + label;
}

void TrainBar::begin_run(std::size_t run, const std::string& label,
                         std::int64_t seed) {
  Active active;
  active.label = fmt::format("{} seed {}", label, seed);
  active_[run] = active;
}

void TrainBar::end_run(std::size_t run, const std::string& outcome) {
  const Active& active = active_.at(run);
  if (active.first_step >= 0) {
    steps_of_ended_ +=
        static_cast<double>(active.progress.info.step - active.first_step);
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
    made += static_cast<double>(active.progress.info.step - active.first_step);
    left += static_cast<double>(active.progress.info.steps -
                                active.progress.info.step);
    steps = static_cast<double>(active.progress.info.steps);
  }
  left += steps * static_cast<double>(runs_ - ended_ - active_.size());
  return made > 0 ? seconds_since(start_) / made * left
                  : std::numeric_limits<double>::infinity();
}

void TrainBar::update(std::size_t run, const Progress& progress) {
  Active& active = active_.at(run);
  if (active.first_step < 0) {
    active.first_step = std::max<std::int64_t>(0, progress.info.step - 1);
  }
  active.progress = progress;
  if (style_ == base::ProgressStyle::kTerminal) {
    if (seconds_since(last_draw_) >= kBetweenDraws) draw();
  } else if (style_ == base::ProgressStyle::kLines && !progress.evaluating) {
    const std::int64_t tenth = 10 * progress.info.step / progress.info.steps;
    if (tenth == active.printed_tenth || progress.items_per_second == 0) return;
    active.printed_tenth = tenth;
    fmt::print(stderr, "{}  {}\n", prefix(run), progress_text(progress));
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
    done += static_cast<double>(active.progress.info.step) /
            static_cast<double>(active.progress.info.steps);
    speed += active.progress.items_per_second;
    unit = active.progress.unit;
    text +=
        (text.empty() ? "" : "  ") + short_text(active.label, active.progress);
  }
  if (runs_ == 1 && !active_.empty()) {
    text = phase_ + progress_text(active_.begin()->second.progress);
  } else {
    text = fmt::format("{}{}/{} runs  {:.0f} {}/s  {}", phase_, ended_, runs_,
                       speed, unit, text);
  }
  fmt::print(
      stderr, "\r{}\033[K",
      base::progress_line(done / static_cast<double>(runs_), seconds_left(),
                          text, base::terminal_columns()));
  std::fflush(stderr);
}

}  // namespace polyattn::train
