#include "train/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "polyattn/models/weights.h"
#include "polyattn/plan.h"
#include "polyattn/target.h"

namespace polyattn::train {
namespace {

double largest(const std::vector<LayerNorms>& layers,
               std::vector<double> LayerNorms::*member, double start) {
  for (const LayerNorms& layer : layers) {
    for (const double value : layer.*member) start = std::fmax(start, value);
  }
  return start;
}

models::NamedTensors weights_of(const torch::nn::Module& module,
                                const std::string& prefix) {
  models::NamedTensors weights;
  for (const auto& [name, tensor] : models::state_of(module)) {
    weights[prefix + name] = tensor.detach();
  }
  return weights;
}

}  // namespace

RunLog::RunLog(const Job& job, const Facts& facts, Network& network,
               AdamW& optimizer)
    : job_(job),
      network_(network),
      optimizer_(optimizer),
      facts_(facts),
      checkpoints_(job.folder / "checkpoints", job.config.record.keep) {
  restore();
  recorder_ = std::make_unique<Recorder>(
      Recorder::Options{.folder = job_.folder,
                        .keep_bytes = progress_.metrics_bytes,
                        .step = progress_.step,
                        .tensorboard = job_.config.record.tensorboard});
  describe();
  earlier_seconds_ = progress_.train_seconds;
  start_ = window_start_ = Clock::now();
  set_state(run::RunState::kRunning);
}

void RunLog::restore() {
  checkpoints_.remove_orphans();
  std::vector<std::string> damaged;
  const auto checkpoint = checkpoints_.latest(
      damaged, [this](const Checkpoint& found) { take(found); });
  if (checkpoint) {
    progress_ = checkpoint->progress;
    saved_step_ = progress_.step;
  }
  if (damaged.empty()) return;
  for (const std::string& line : damaged) {
    job_.warn("a checkpoint cannot be used and is left out: " + line);
  }
  job_.warn(checkpoint
                ? fmt::format("the run goes on from step {}", progress_.step)
                : "no checkpoint can be used: the run begins again at step 0");
}

// All or nothing: a checkpoint that does not fit leaves the weights and the
// moments as they are.
void RunLog::take(const Checkpoint& checkpoint) {
  const Progress& found = checkpoint.progress;
  if (found.step > facts_.steps) {
    throw run::RecordError(fmt::format("it is of step {}, but the run has {}",
                                       found.step, facts_.steps));
  }
  const std::filesystem::path metrics = job_.folder / "metrics.jsonl";
  std::error_code absent;
  const auto size = std::filesystem::file_size(metrics, absent);
  if (static_cast<std::uint64_t>(found.metrics_bytes) > (absent ? 0 : size)) {
    throw run::RecordError(
        fmt::format("it knows of {} bytes of {}, which is shorter",
                    found.metrics_bytes, metrics.string()));
  }
  AdamW optimizer = optimizer_;
  optimizer.load_state(checkpoint.tensors, found.step);
  models::load_state(network_.module(),
                     without_prefix(checkpoint.tensors, "model."));
  optimizer_ = std::move(optimizer);
}

void RunLog::describe() {
  info_.task = job_.config.task.name;
  info_.activation = job_.config.model.activation;
  info_.seed = job_.config.train.seed;
  info_.steps = facts_.steps;
  info_.parameters = parameter_count(network_.module());
  info_.version = job_.version;
  info_.command = job_.command;
  info_.instruction_set = target_name();
  info_.path_costs = to_string(path_costs());
  info_.threads = static_cast<int>(job_.config.train.threads);
  info_.machine = base::machine_name();
  info_.started = base::utc_now();
  info_.tokens = network_.tokens();
  info_.test_count = facts_.test_count;
}

double RunLog::train_seconds() const {
  return earlier_seconds_ - paused_ +
         std::chrono::duration<double>(Clock::now() - start_).count();
}

std::int64_t RunLog::epoch() const {
  return (progress_.step * job_.config.train.accumulate) /
         facts_.batches_per_epoch;
}

void RunLog::set_state(run::RunState state) {
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
  run::write_run_info(job_.folder, info_);
}

void RunLog::count_step(const StepResult& result) {
  ++progress_.step;
  progress_.loss_sum += result.loss;
  ++progress_.loss_count;
  window_items_ += result.items;
}

void RunLog::write_step(const StepResult& result, double waited) {
  const double window =
      std::chrono::duration<double>(Clock::now() - window_start_).count();
  speed_ = static_cast<double>(window_items_) / window;
  recorder_->write(
      {{"kind", "train"},
       {"step", progress_.step},
       {"epoch", epoch()},
       {"loss", base::number(progress_.loss_sum /
                             static_cast<double>(progress_.loss_count))},
       {"lr", result.lr},
       {"grad_norm", base::number(result.gradient_norm)},
       {"seconds", train_seconds()},
       {"items_per_second", speed_},
       {"wait_share", (waited - window_waited_) / window}});
  progress_.loss_sum = 0;
  progress_.loss_count = 0;
  window_start_ = Clock::now();
  window_items_ = 0;
  window_waited_ = waited;
}

void RunLog::write_norms(const std::vector<LayerNorms>& norms) {
  if (norms.empty()) return;
  progress_.max_weight_norm =
      largest(norms, &LayerNorms::weight_max, progress_.max_weight_norm);
  progress_.max_jacobian_norm =
      largest(norms, &LayerNorms::jacobian_max, progress_.max_jacobian_norm);
  recorder_->write(norms_record(progress_.step, network_.tokens(), norms));
}

void RunLog::write_divergence(const StepResult& result) {
  const std::int64_t step = progress_.step + 1;
  recorder_->write({{"kind", "diverged"},
                    {"step", step},
                    {"loss", base::number(result.loss)},
                    {"grad_norm", base::number(result.gradient_norm)},
                    {"what", *result.diverged}});
  recorder_->sync();
  info_.divergence = run::Divergence{.step = step, .what = *result.diverged};
  set_state(run::RunState::kDiverged);
}

void RunLog::write_evaluation(const Evaluation& evaluation, double seconds) {
  progress_.last = evaluation;
  if (!progress_.best || evaluation.loss < *progress_.best) {
    progress_.best = evaluation.loss;
    checkpoints_.save_best(weights_of(network_.module(), ""), progress_.step,
                           evaluation);
  }
  progress_.eval_seconds += seconds;
  paused_ += seconds;
  window_start_ += std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(seconds));
  base::Json record = {
      {"kind", "eval"}, {"step", progress_.step}, {"epoch", epoch()}};
  record.update(evaluation_json(evaluation));
  record["seconds"] = seconds;
  recorder_->write(record);
}

void RunLog::save() {
  if (saved_step_ == progress_.step) return;
  recorder_->sync();
  progress_.metrics_bytes = recorder_->bytes();
  progress_.train_seconds = train_seconds();
  set_state(run::RunState::kRunning);
  Checkpoint checkpoint{.progress = progress_, .tensors = optimizer_.state()};
  checkpoint.tensors.merge(weights_of(network_.module(), "model."));
  checkpoints_.save(checkpoint);
  saved_step_ = progress_.step;
}

}  // namespace polyattn::train
