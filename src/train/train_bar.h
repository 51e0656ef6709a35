// The progress of training, for one run or several.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/progress.h"
#include "train/progress.h"

namespace polyattn::train {

// "step 300/900  loss 0.512  accuracy 84.1 %  1830 images/s"
std::string progress_text(const Progress& progress);

class TrainBar {
 public:
  // On a terminal a line that rewrites itself; otherwise a line at each tenth
  // of a run. `phase` stands before each, if there are several.
  TrainBar(base::ProgressStyle style, std::size_t runs, std::string phase = "");
  ~TrainBar();
  TrainBar(const TrainBar&) = delete;
  TrainBar& operator=(const TrainBar&) = delete;

  // Runs are numbered from 0; several may be under way.
  void begin_run(std::size_t run, const std::string& label, std::int64_t seed);
  void update(std::size_t run, const Progress& progress);
  void end_run(std::size_t run, const std::string& outcome);

  // A line that stays.
  void note(const std::string& text);

 private:
  struct Active {
    std::string label;
    Progress progress;
    std::int64_t first_step = -1;
    std::int64_t printed_tenth = -1;
  };

  std::string prefix(std::size_t run) const;
  void draw();
  double seconds_left() const;

  base::ProgressStyle style_;
  std::size_t runs_;
  std::string phase_;
  std::size_t ended_ = 0;
  std::map<std::size_t, Active> active_;
  // Steps that this process has seen, to tell how long the rest will take.
  double steps_of_ended_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_draw_;
};

}  // namespace polyattn::train
