// What is going on, on standard error: a line that rewrites itself on a
// terminal, plain lines otherwise.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace polyattn::base {

enum class ProgressStyle { kNone, kLines, kTerminal };

// What standard error allows. Plain lines are left out beside JSON, which is
// for programs.
ProgressStyle progress_style(bool json);

// Of the terminal on standard error; 80 if it is none.
int terminal_columns();

// "[########------------]  40%  1:20 left  label", at most `columns` wide.
std::string progress_line(double fraction, double seconds_left,
                          std::string_view label, int columns);

class Progress {
 public:
  // total_effort: the sum of what step() will be told.
  Progress(ProgressStyle style, int steps, double total_effort);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A step of this effort begins; the one before it is done.
  void step(std::string_view label, double effort);

 private:
  ProgressStyle style_;
  int steps_;
  double total_effort_;
  int step_ = 0;
  double effort_done_ = 0;
  double effort_now_ = 0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace polyattn::base
