#include "train/trainer.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "polyattn/models/weights.h"
#include "polyattn/target.h"
#include "run/machine.h"
#include "train/adamw.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/examples.h"
#include "train/network.h"
#include "train/prefetch.h"
#include "train/recorder.h"
#include "train/run_folder.h"
#include "train/step.h"

namespace polyattn::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double largest(const std::vector<LayerNorms>& layers,
               std::vector<double> LayerNorms::*member, double start) {
  for (const LayerNorms& layer : layers) {
    for (const double value : layer.*member) start = std::fmax(start, value);
  }
  return start;
}

std::int64_t steps_of(const run::Config& config, const Examples& examples) {
  if (config.train.steps > 0) return config.train.steps;
  return std::max<std::int64_t>(1, config.train.epochs *
                                       examples.batches_per_epoch() /
                                       config.train.accumulate);
}

// The weights that a user of the run wants: averaged, if there is an average.
models::NamedTensors weights_of(const torch::nn::Module& module) {
  models::NamedTensors weights;
  for (const auto& [name, tensor] : models::state_of(module)) {
    weights[name] = tensor.detach();
  }
  return weights;
}

class Trainer {
 public:
  explicit Trainer(const Job& job);

  run::RunInfo run();

 private:
  void restore();
  void start_records();
  // False if the run has ended.
  bool step(Prefetcher& batches);
  void record_step(const StepResult& result, double waited);
  void record_norms(const StepResult& result);
  void record_divergence(const StepResult& result);
  void evaluate_now();
  void save();
  void update_info(run::RunState state);
  void report(bool evaluating);
  bool due(std::int64_t every) const;
  std::int64_t epoch() const;
  double train_seconds() const;

  const Job& job_;
  const run::Config& config_;
  RunFolder folder_;
  TaskShape shape_;
  std::unique_ptr<Examples> examples_;
  std::unique_ptr<Network> network_;
  AdamW optimizer_;
  std::int64_t steps_;
  Stepper stepper_;
  Checkpoints checkpoints_;
  std::unique_ptr<Recorder> recorder_;
  run::PeakMemory memory_;
  Progress progress_;
  run::RunInfo info_;
  std::int64_t saved_step_ = -1;
  // Of this process.
  Clock::time_point start_ = Clock::now();
  double earlier_seconds_ = 0;  // of training, before it
  double paused_ = 0;           // in evaluations
  std::int64_t first_step_ = 0;
  // Since the last record.
  Clock::time_point window_start_ = Clock::now();
  std::int64_t window_items_ = 0;
  double window_waited_ = 0;
  double speed_ = 0;
};

Trainer::Trainer(const Job& job)
    : job_(job),
      config_(job.config),
      folder_(job.folder, job.config, job.resume),
      shape_(shape_of(*job.data, job.config.task)),
      examples_(make_examples(job.data, job.config)),
      network_(make_network(job.config, shape_)),
      optimizer_(network_->module(), job.config.train),
      steps_(steps_of(job.config, *examples_)),
      stepper_(config_, *network_, optimizer_, steps_),
      checkpoints_(job.folder / "checkpoints", job.config.record.keep) {
  network_->module().train();
  restore();
  start_records();
}

void Trainer::restore() {
  std::vector<std::string> damaged;
  auto checkpoint = checkpoints_.latest(damaged);
  for (const std::string& line : damaged) {
    job_.warn("a checkpoint cannot be read and is left out: " + line);
  }
  if (!checkpoint) return;
  models::load_state(network_->module(),
                     without_prefix(checkpoint->tensors, "model."));
  optimizer_.load_state(checkpoint->tensors, checkpoint->progress.step);
  progress_ = checkpoint->progress;
  saved_step_ = progress_.step;
}

void Trainer::start_records() {
  const auto& [task, model, train, augment, record] = config_;
  recorder_ = std::make_unique<Recorder>(
      Recorder::Options{.folder = folder_.path(),
                        .keep_bytes = progress_.metrics_bytes,
                        .step = progress_.step,
                        .tensorboard = record.tensorboard});
  info_.task = task.name;
  info_.activation = model.activation;
  info_.seed = train.seed;
  info_.steps = steps_;
  info_.parameters = parameter_count(network_->module());
  info_.version = job_.version;
  info_.command = job_.command;
  info_.instruction_set = target_name();
  info_.threads = static_cast<int>(train.threads);
  info_.machine = run::machine_name();
  info_.started = run::utc_now();
  info_.tokens = network_->tokens();
  info_.test_count = examples_->test_count();
  earlier_seconds_ = progress_.train_seconds;
  first_step_ = progress_.step;
  update_info(run::RunState::kRunning);
}

std::int64_t Trainer::epoch() const {
  return (progress_.step * config_.train.accumulate) /
         examples_->batches_per_epoch();
}

double Trainer::train_seconds() const {
  return earlier_seconds_ + seconds_since(start_) - paused_;
}

bool Trainer::due(std::int64_t every) const {
  return progress_.step == steps_ || (every > 0 && progress_.step % every == 0);
}

void Trainer::update_info(run::RunState state) {
  info_.state = state;
  info_.step = progress_.step;
  if (const auto peak = memory_.peak()) {
    progress_.peak_mb =
        std::max(progress_.peak_mb, static_cast<double>(*peak) / 1e6);
  }
  info_.peak_mb = progress_.peak_mb;
  info_.train_seconds = train_seconds();
  info_.eval_seconds = progress_.eval_seconds;
  info_.max_weight_norm = progress_.max_weight_norm;
  info_.max_jacobian_norm = progress_.max_jacobian_norm;
  if (progress_.last) {
    info_.loss = progress_.last->loss;
    info_.accuracy = progress_.last->accuracy;
    info_.bits_per_byte = progress_.last->bits_per_byte;
  }
  run::write_run_info(folder_.path(), info_);
}

void Trainer::report(bool evaluating) {
  const std::int64_t done = progress_.step - first_step_;
  const double used = seconds_since(start_) - paused_;
  Status status{.step = progress_.step,
                .steps = steps_,
                .last = progress_.last,
                .items_per_second = speed_,
                .unit = examples_->unit(),
                .evaluating = evaluating};
  if (progress_.loss_count > 0) {
    status.loss =
        progress_.loss_sum / static_cast<double>(progress_.loss_count);
  }
  status.seconds_left = done > 0
                            ? used / static_cast<double>(done) *
                                  static_cast<double>(steps_ - progress_.step)
                            : std::numeric_limits<double>::infinity();
  job_.progress(status);
}

void Trainer::record_step(const StepResult& result, double waited) {
  const double seconds = seconds_since(window_start_);
  speed_ = static_cast<double>(window_items_) / seconds;
  recorder_->write(
      {{"kind", "train"},
       {"step", progress_.step},
       {"epoch", epoch()},
       {"loss", run::number(progress_.loss_sum /
                            static_cast<double>(progress_.loss_count))},
       {"lr", result.lr},
       {"grad_norm", run::number(result.gradient_norm)},
       {"seconds", train_seconds()},
       {"items_per_second", speed_},
       {"wait_share", (waited - window_waited_) / seconds}});
  report(false);
  progress_.loss_sum = 0;
  progress_.loss_count = 0;
  window_start_ = Clock::now();
  window_items_ = 0;
  window_waited_ = waited;
}

void Trainer::record_norms(const StepResult& result) {
  if (result.norms.empty()) return;
  progress_.max_weight_norm =
      largest(result.norms, &LayerNorms::weight_max, progress_.max_weight_norm);
  progress_.max_jacobian_norm = largest(result.norms, &LayerNorms::jacobian_max,
                                        progress_.max_jacobian_norm);
  recorder_->write(
      norms_record(progress_.step, network_->tokens(), result.norms));
}

void Trainer::record_divergence(const StepResult& result) {
  const std::int64_t step = progress_.step + 1;
  recorder_->write({{"kind", "diverged"},
                    {"step", step},
                    {"loss", run::number(result.loss)},
                    {"grad_norm", run::number(result.gradient_norm)},
                    {"what", *result.diverged}});
  recorder_->sync();
  info_.divergence = run::Divergence{.step = step, .what = *result.diverged};
  update_info(run::RunState::kDiverged);
}

void Trainer::evaluate_now() {
  const auto start = Clock::now();
  optimizer_.swap_average();
  {
    const Autocast autocast(config_.train.autocast);
    progress_.last = evaluate(*network_, *examples_, shape_.text,
                              [&](double) { report(true); });
  }
  if (!progress_.best || progress_.last->loss < *progress_.best) {
    progress_.best = progress_.last->loss;
    checkpoints_.save_best(weights_of(network_->module()), progress_.step,
                           *progress_.last);
  }
  optimizer_.swap_average();
  const double seconds = seconds_since(start);
  progress_.eval_seconds += seconds;
  paused_ += seconds;
  window_start_ += std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(seconds));
  run::Json record = {
      {"kind", "eval"}, {"step", progress_.step}, {"epoch", epoch()}};
  record.update(evaluation_json(*progress_.last));
  record["seconds"] = seconds;
  recorder_->write(record);
}

void Trainer::save() {
  if (saved_step_ == progress_.step) return;
  recorder_->sync();
  progress_.metrics_bytes = recorder_->bytes();
  progress_.train_seconds = train_seconds();
  update_info(run::RunState::kRunning);
  Checkpoint checkpoint{.progress = progress_, .tensors = optimizer_.state()};
  for (const auto& [name, tensor] : models::state_of(network_->module())) {
    checkpoint.tensors["model." + name] = tensor;
  }
  checkpoints_.save(checkpoint);
  saved_step_ = progress_.step;
}

bool Trainer::step(Prefetcher& batches) {
  const std::int64_t norms = config_.record.norms;
  const std::int64_t next = progress_.step + 1;
  const bool watch =
      norms > 0 && (next == 1 || next == steps_ || next % norms == 0);
  const StepResult result = stepper_.make(batches, progress_.step, watch);
  if (result.diverged) {
    record_divergence(result);
    return false;
  }
  ++progress_.step;
  progress_.loss_sum += result.loss;
  ++progress_.loss_count;
  window_items_ += result.items;
  if (watch) record_norms(result);
  if (due(config_.record.every)) {
    record_step(result, batches.waited());
  } else {
    report(false);
  }
  const std::int64_t each_epoch = std::max<std::int64_t>(
      1, examples_->batches_per_epoch() / config_.train.accumulate);
  if (due(config_.record.evaluate > 0 ? config_.record.evaluate : each_epoch)) {
    evaluate_now();
  }
  if (due(config_.record.checkpoint)) save();
  return true;
}

run::RunInfo Trainer::run() {
  const std::int64_t each = config_.train.accumulate;
  Prefetcher batches(
      [&](std::int64_t index) { return examples_->train_batch(index); },
      progress_.step * each, steps_ * each);
  while (progress_.step < steps_) {
    if (job_.stop()) {
      save();
      update_info(run::RunState::kInterrupted);
      return info_;
    }
    if (!step(batches)) return info_;
  }
  update_info(run::RunState::kFinished);
  return info_;
}

// What run.json says, if the run needs nothing more.
std::optional<run::RunInfo> ended_run(const Job& job) {
  if (!job.resume || !std::filesystem::exists(job.folder / "run.json")) {
    return std::nullopt;
  }
  const run::RunInfo info = run::read_run_info(job.folder);
  const bool ended = info.state == run::RunState::kFinished ||
                     info.state == run::RunState::kDiverged;
  if (!ended) return std::nullopt;
  const RunFolder same_config(job.folder, job.config, true);
  return info;
}

}  // namespace

std::int64_t planned_steps(const run::Config& config,
                           const std::shared_ptr<const TaskData>& data) {
  return steps_of(config, *make_examples(data, config));
}

run::RunInfo train(const Job& job) {
  if (const auto info = ended_run(job)) return *info;
  at::set_num_threads(static_cast<int>(job.config.train.threads));
  // What earlier runs of this process left must not count as this one's.
  ::malloc_trim(0);
  Trainer trainer(job);
  return trainer.run();
}

}  // namespace polyattn::train
