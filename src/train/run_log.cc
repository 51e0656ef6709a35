#include "train/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/openblas.h"
#include "polyattn/models/weights.h"
#include "polyattn/plan.h"
#include "polyattn/target.h"
#include "polyattn/version.h"
#include "train/start.h"

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

// What goes on by itself, not as a part of its comparison, is still a part of
// it.
std::optional<std::string> variant_of(const Job& job) {
  if (!job.variant.empty()) return job.variant;
  if (!std::filesystem::exists(job.folder / "run.json")) return std::nullopt;
  return run::read_run_info(job.folder).variant;
}

}  // namespace

RunLog::RunLog(const Job& job, const Facts& facts, Network& network,
               Optimizer& optimizer)
    : job_(job),
      network_(network),
      optimizer_(optimizer),
      facts_(facts),
      checkpoints_(job.folder / "checkpoints", job.config.record.keep) {
  check_teacher();
  restore();
  metrics_.emplace(job_.folder / "metrics.jsonl", progress_.metrics_bytes);
  if (job_.config.record.tensorboard) {
    events_.emplace(job_.folder / "tensorboard", info().step);
  }
  describe();
  earlier_seconds_ = info().train_seconds;
  start_ = window_start_ = Clock::now();
  set_state(run::RunState::kRunning);
}

void RunLog::check_teacher() const {
  if (!facts_.teacher) return;
  if (!std::filesystem::exists(job_.folder / "run.json")) return;
  const auto before = run::read_run_info(job_.folder).teacher;
  if (!before || before->weights == facts_.teacher->weights) return;
  throw run::RecordError(fmt::format(
      "[train] {} began with a teacher of other weights (hash {}) than those "
      "in {} (hash {}): choose another folder with --out",
      job_.folder.string(), before->weights, facts_.teacher->run,
      facts_.teacher->weights));
}

void RunLog::restore() {
  checkpoints_.remove_orphans();
  std::vector<std::string> damaged;
  const auto checkpoint = checkpoints_.latest(
      damaged, [this](const Checkpoint& found) { take(found); });
  if (checkpoint) {
    progress_ = checkpoint->progress;
    saved_step_ = info().step;
  }
  if (damaged.empty()) return;
  for (const std::string& line : damaged) {
    job_.warn("a checkpoint cannot be used and is left out: " + line);
  }
  job_.warn(checkpoint
                ? fmt::format("the run goes on from step {}", info().step)
                : "no checkpoint can be used: the run begins again at step 0");
}

// All or nothing: a checkpoint that does not fit leaves the weights and
// the optimizer as they are.
void RunLog::take(const Checkpoint& checkpoint) {
  const Progress& found = checkpoint.progress;
  if (found.info.step > facts_.steps) {
    throw run::RecordError(fmt::format("it is of step {}, but the run has {}",
                                       found.info.step, facts_.steps));
  }
  const std::filesystem::path metrics = job_.folder / "metrics.jsonl";
  std::error_code absent;
  const auto size = std::filesystem::file_size(metrics, absent);
  if (static_cast<std::uint64_t>(found.metrics_bytes) > (absent ? 0 : size)) {
    throw run::RecordError(
        fmt::format("it knows of {} bytes of {}, which is shorter",
                    found.metrics_bytes, metrics.string()));
  }
  const auto take_state =
      optimizer_.taking(checkpoint.tensors, found.info.step);
  models::load_state(network_.module(),
                     without_prefix(checkpoint.tensors, "model."));
  take_state();
}

void RunLog::describe() {
  run::RunInfo& info = progress_.info;
  info.task = job_.config.task.name;
  info.activation = job_.config.model.activation;
  info.model = job_.config.model.name;
  info.variant = variant_of(job_);
  info.seed = job_.config.train.seed;
  info.steps = facts_.steps;
  info.parameters = parameter_count(network_.module());
  info.version = job_.version;
  info.command = job_.command;
  info.instruction_set = target_name();
  info.path_costs = to_string(path_costs());
  set_bits();
  info.threads = static_cast<int>(job_.config.train.threads);
  info.machine = base::machine_name();
  info.started = base::utc_now();
  info.tokens = network_.tokens();
  info.test_count = facts_.test_count;
  info.pixels = facts_.pixels;
  info.images = facts_.images;
  info.teacher = facts_.teacher;
  info.tokenizer = facts_.tokenizer;
  if (job_.config.task.validation > 0) info.split = run::kValidation;
}

// What the bits of a run depend on beside its config. A run that goes on with
// something else is not refused, because it is as good as any; but it says so.
void RunLog::set_bits() {
  const std::string blas = base::openblas_name();
  if (info().step > 0 && std::filesystem::exists(job_.folder / "run.json")) {
    warn_of_other_bits(run::read_run_info(job_.folder), blas);
  }
  if (!blas.empty()) progress_.info.blas = blas;
  progress_.info.kernel_bits = kKernelBits;
}

void RunLog::warn_of_other_bits(const run::RunInfo& before,
                                const std::string& blas) {
  if (before.blas && *before.blas != blas) {
    job_.warn(fmt::format(
        "the run began with {} and goes on with {}: rounding may differ",
        *before.blas, blas.empty() ? "another BLAS" : blas));
  }
  if (before.kernel_bits && *before.kernel_bits != kKernelBits) {
    job_.warn(fmt::format(
        "the run began with kernels of attention whose bits have the number "
        "{}, and goes on with {}: rounding and dropped weights may differ",
        *before.kernel_bits, kKernelBits));
  } else if (!before.kernel_bits && job_.config.model.attention_dropout > 0) {
    job_.warn(fmt::format(
        "the run began with a build that drew the weights that "
        "model.attention_dropout {} removes in another way: from step {} on "
        "others are dropped",
        job_.config.model.attention_dropout, info().step));
  }
}

double RunLog::train_seconds() const {
  return earlier_seconds_ - paused_ +
         std::chrono::duration<double>(Clock::now() - start_).count();
}

std::int64_t RunLog::epoch() const {
  return (info().step * job_.config.train.accumulate) /
         facts_.batches_per_epoch;
}

void RunLog::set_state(run::RunState state) {
  run::RunInfo& info = progress_.info;
  info.state = state;
  if (const auto peak = memory_.peak()) {
    info.peak_mb = std::max(info.peak_mb, static_cast<double>(*peak) / 1e6);
  }
  info.train_seconds = train_seconds();
  run::write_run_info(job_.folder, info);
}

void RunLog::write(const base::Json& record) {
  metrics_->write(record);
  if (events_) events_->record(record);
}

void RunLog::sync() {
  metrics_->sync();
  if (events_) events_->flush();
}

void RunLog::write_start(const std::vector<nn::LayerStart>& layers) {
  if (saved_step_ < 0) write(start_record(job_.config, layers));
}

void RunLog::count_step(const StepResult& result) {
  ++progress_.info.step;
  progress_.loss_sum += result.loss;
  ++progress_.loss_count;
  window_items_ += result.items;
}

void RunLog::write_step(const StepResult& result, double waited) {
  const double window =
      std::chrono::duration<double>(Clock::now() - window_start_).count();
  progress_.items_per_second = static_cast<double>(window_items_) / window;
  write({{"kind", "train"},
         {"step", info().step},
         {"epoch", epoch()},
         {"loss", base::number(progress_.loss())},
         {"lr", result.lr},
         {"grad_norm", base::number(result.gradient_norm)},
         {"seconds", train_seconds()},
         {"items_per_second", progress_.items_per_second},
         {"wait_share", (waited - window_waited_) / window}});
  progress_.loss_sum = 0;
  progress_.loss_count = 0;
  window_start_ = Clock::now();
  window_items_ = 0;
  window_waited_ = waited;
}

void RunLog::write_norms(const std::vector<LayerNorms>& norms) {
  if (norms.empty()) return;
  progress_.info.max_weight_norm =
      largest(norms, &LayerNorms::weight_max, progress_.info.max_weight_norm);
  progress_.info.max_jacobian_norm = largest(norms, &LayerNorms::jacobian_max,
                                             progress_.info.max_jacobian_norm);
  write(norms_record(info().step, network_.tokens(), norms));
}

void RunLog::write_divergence(const StepResult& result) {
  const std::int64_t step = info().step + 1;
  write({{"kind", "diverged"},
         {"step", step},
         {"loss", base::number(result.loss)},
         {"grad_norm", base::number(result.gradient_norm)},
         {"what", *result.diverged}});
  sync();
  progress_.info.divergence =
      run::Divergence{.step = step, .what = *result.diverged};
  set_state(run::RunState::kDiverged);
}

void RunLog::write_evaluation(const run::Evaluation& evaluation,
                              double seconds) {
  progress_.info.result = evaluation;
  if (!progress_.best || evaluation.loss < *progress_.best) {
    progress_.best = evaluation.loss;
    checkpoints_.save_best(weights_of(network_.module(), ""), info().step,
                           evaluation);
  }
  progress_.info.eval_seconds += seconds;
  paused_ += seconds;
  window_start_ += std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(seconds));
  base::Json record = {
      {"kind", "eval"}, {"step", info().step}, {"epoch", epoch()}};
  record.update(run::evaluation_json(evaluation));
  record["seconds"] = seconds;
  write(record);
}

void RunLog::save() {
  if (saved_step_ == info().step) return;
  sync();
  progress_.metrics_bytes = metrics_->bytes();
  set_state(run::RunState::kRunning);
  Checkpoint checkpoint{.progress = progress_, .tensors = optimizer_.state()};
  checkpoint.tensors.merge(weights_of(network_.module(), "model."));
  checkpoints_.save(checkpoint);
  saved_step_ = info().step;
}

}  // namespace polyattn::train
