// What a run writes down: its records, its checkpoints, and run.json. It knows
// how far the run has come and how long that took; the loop tells it what
// happened.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/machine.h"
#include "polyattn/nn/match.h"
#include "train/checkpoint.h"
#include "train/network.h"
#include "train/optimizer.h"
#include "train/run/records.h"
#include "train/run/tensorboard.h"
#include "train/step.h"
#include "train/trainer.h"

namespace polyattn::train {

class RunLog {
 public:
  // What the data and the config say of the run.
  struct Facts {
    std::int64_t steps = 0;
    std::int64_t batches_per_epoch = 0;
    std::int64_t test_count = 0;
    std::optional<run::PixelStatistics> pixels = {};
    std::optional<run::ImageShape> images = {};
    std::optional<run::Teacher> teacher = {};
    std::optional<std::string> tokenizer = {};  // its sha256
  };

  // Takes up the newest checkpoint that belongs to the run, if there is one:
  // its weights go into the network and the rest into the optimizer. Throws
  // run::RecordError if the run has another teacher than it began with.
  RunLog(const Job& job, const Facts& facts, Network& network,
         Optimizer& optimizer);

  const Progress& progress() const { return progress_; }
  const run::RunInfo& info() const { return progress_.info; }

  // Unless the run goes on from a checkpoint: its records have it then.
  void write_start(const std::vector<nn::LayerStart>& layers);

  // A step was made. `waited`: seconds for batches, since the start.
  void count_step(const StepResult& result);
  void write_step(const StepResult& result, double waited);
  void write_norms(const std::vector<LayerNorms>& norms);
  void write_divergence(const StepResult& result);

  // An evaluation took so many seconds, which are not those of training.
  void write_evaluation(const run::Evaluation& evaluation, double seconds);

  // A checkpoint of now, unless there is one.
  void save();
  void set_state(run::RunState state);

 private:
  using Clock = std::chrono::steady_clock;

  void restore();
  void check_teacher() const;
  void take(const Checkpoint& checkpoint);
  void describe();
  void set_bits();
  void warn_of_other_bits(const run::RunInfo& before, const std::string& blas);
  void write(const base::Json& record);
  void sync();
  std::int64_t epoch() const;
  double train_seconds() const;

  const Job& job_;
  Network& network_;
  Optimizer& optimizer_;
  Facts facts_;
  Checkpoints checkpoints_;
  std::optional<run::MetricsWriter> metrics_;
  std::optional<run::EventWriter> events_;
  base::PeakMemory memory_;
  Progress progress_;
  std::int64_t saved_step_ = -1;
  Clock::time_point start_ = Clock::now();
  double earlier_seconds_ = 0;  // of training, before this process
  double paused_ = 0;           // in evaluations
  // Since the last record.
  Clock::time_point window_start_ = Clock::now();
  std::int64_t window_items_ = 0;
  double window_waited_ = 0;
};

}  // namespace polyattn::train
