// The progress of training, for one run or several.
#pragma once

#include <chrono>
#include <string>

#include "cli/progress.h"
#include "train/trainer.h"

namespace polyattn::cli {

// "step 300/900  loss 0.512  accuracy 84.1 %  1830 images/s"
std::string status_text(const train::Status& status);

class TrainBar {
 public:
  // On a terminal a line that rewrites itself; otherwise a line at the start of
  // a run, at a tenth each, and at each evaluation.
  TrainBar(ProgressStyle style, int runs);
  ~TrainBar();
  TrainBar(const TrainBar&) = delete;
  TrainBar& operator=(const TrainBar&) = delete;

  // A run begins; `label` is put before its figures.
  void begin_run(const std::string& label);
  void update(const train::Status& status);
  // It has ended; on what, if that is worth a line.
  void end_run(const std::string& outcome);

  // A line that stays.
  void note(const std::string& text);

 private:
  void draw(const train::Status& status);
  double seconds_left(const train::Status& status) const;

  ProgressStyle style_;
  int runs_;
  int run_ = 0;
  std::string label_;
  std::int64_t printed_tenth_ = -1;
  // Time that steps of this process took, to tell how long the rest will take.
  double done_steps_ = 0;
  double done_seconds_ = 0;
  std::int64_t first_step_ = -1;
  std::int64_t last_step_ = 0;
  std::chrono::steady_clock::time_point run_start_;
  std::chrono::steady_clock::time_point last_draw_;
};

}  // namespace polyattn::cli
