#include "train/trainer.h"

#include <ATen/Parallel.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "base/text_file.h"
#include "train/attention_maps.h"
#include "train/evaluate.h"
#include "train/examples.h"
#include "train/lengths.h"
#include "train/network.h"
#include "train/optimizers.h"
#include "train/physics_task.h"
#include "train/prefetch.h"
#include "train/run_folder.h"
#include "train/run_log.h"
#include "train/start.h"
#include "train/step.h"
#include "train/teacher.h"
#include "train/text_tokens.h"

namespace polyattn::train {
namespace {

// Those of the config, or those that its epochs take.
std::int64_t steps_of(const run::Config& config, const Examples& examples) {
  if (config.train.steps > 0) return config.train.steps;
  return std::max<std::int64_t>(1, config.train.epochs *
                                       examples.batches_per_epoch() /
                                       config.train.accumulate);
}

// Before hours of training rather than after.
std::vector<std::int64_t> checked_lengths(const Job& job) {
  const std::string& text = job.config.record.lengths;
  if (text.empty()) return {};
  std::vector<std::int64_t> lengths = run::parse_length_list(text);
  check_lengths(job.config, *job.data, lengths);
  return lengths;
}

class Trainer {
 public:
  explicit Trainer(const Job& job);

  run::RunInfo run();

 private:
  // False if the run has ended.
  bool step(Prefetcher& batches);
  void evaluate_now();
  void save_maps();
  void save_lengths();
  void save_solution();
  void report(bool evaluating);
  bool due(std::int64_t every) const;
  std::int64_t steps_between_evaluations() const;

  const Job& job_;
  const run::Config& config_;
  TaskShape shape_;
  std::vector<std::int64_t> lengths_;
  std::unique_ptr<Examples> examples_;
  std::unique_ptr<const Teacher> teacher_;
  RunFolder folder_;
  StartedNetwork start_;
  Network& network_;
  std::unique_ptr<Optimizer> optimizer_;
  std::int64_t steps_;
  Stepper stepper_;
  RunLog log_;
};

Trainer::Trainer(const Job& job)
    : job_(job),
      config_(job.config),
      shape_(shape_of(*job.data, job.config.task)),
      lengths_(checked_lengths(job)),
      examples_(make_examples(job.data, job.config)),
      teacher_(make_teacher(job.config, shape_, examples_->pixels())),
      folder_(job.folder, job.config, {.resume = job.resume, .warn = job.warn}),
      start_(start_network(job.config, shape_, *examples_)),
      network_(*start_.network),
      optimizer_(make_optimizer(network_.module(), job.config.train)),
      steps_(steps_of(job.config, *examples_)),
      stepper_(config_, network_, *optimizer_, steps_, teacher_.get()),
      log_(
          job,
          {.steps = steps_,
           .batches_per_epoch = examples_->batches_per_epoch(),
           .test_count = examples_->test_count(),
           .pixels = examples_->pixels(),
           .images = shape_.image_size > 0
                         ? std::optional(image_shape_of(shape_))
                         : std::nullopt,
           .teacher = teacher_ ? std::optional(teacher_->info()) : std::nullopt,
           .tokenizer = keep_tokenizer(job.folder, *job.data)},
          network_, *optimizer_) {
  network_.module().train();
  if (shape_.problem)
    keep_problem(job.folder, *shape_.problem, log_.info().step > 0);
  if (!start_.layers.empty()) log_.write_start(start_.layers);
}

bool Trainer::due(std::int64_t every) const {
  const std::int64_t done = log_.info().step;
  return done == steps_ || (every > 0 && done % every == 0);
}

std::int64_t Trainer::steps_between_evaluations() const {
  if (config_.record.evaluate > 0) return config_.record.evaluate;
  return std::max<std::int64_t>(
      1, examples_->batches_per_epoch() / config_.train.accumulate);
}

void Trainer::report(bool evaluating) {
  Progress progress = log_.progress();
  progress.unit = examples_->unit();
  progress.evaluating = evaluating;
  job_.progress(progress);
}

void Trainer::evaluate_now() {
  const auto start = std::chrono::steady_clock::now();
  optimizer_->swap_average();
  run::Evaluation found;
  {
    const Autocast autocast(config_.train.autocast);
    found = evaluate(network_, *examples_, shape_.text,
                     [&](double) { report(true); });
  }
  log_.write_evaluation(found, std::chrono::duration<double>(
                                   std::chrono::steady_clock::now() - start)
                                   .count());
  optimizer_->swap_average();
}

bool Trainer::step(Prefetcher& batches) {
  const std::int64_t norms = config_.record.norms;
  const std::int64_t done = log_.info().step;
  const bool watch =
      norms > 0 && (done == 0 || done + 1 == steps_ || (done + 1) % norms == 0);
  const StepResult result = stepper_.make(batches, done, watch);
  folder_.keep();
  if (result.diverged) {
    log_.write_divergence(result);
    return false;
  }
  log_.count_step(result);
  report(false);
  if (watch) log_.write_norms(result.norms);
  if (due(config_.record.every)) log_.write_step(result, batches.waited());
  if (due(steps_between_evaluations())) evaluate_now();
  if (due(config_.record.checkpoint)) log_.save();
  return true;
}

run::RunInfo Trainer::run() {
  const std::int64_t each = config_.train.accumulate;
  Prefetcher batches(
      [&](std::int64_t index) { return examples_->train_batch(index); },
      log_.info().step * each, steps_ * each);
  while (log_.info().step < steps_) {
    if (job_.stop()) {
      log_.save();
      folder_.keep();
      log_.set_state(run::RunState::kInterrupted);
      return log_.info();
    }
    if (!step(batches)) return log_.info();
  }
  save_maps();
  save_lengths();
  save_solution();
  log_.set_state(run::RunState::kFinished);
  return log_.info();
}

void Trainer::save_maps() {
  optimizer_->swap_average();
  base::Json maps;
  {
    const Autocast autocast(config_.train.autocast);
    maps = attention_maps(network_, *examples_, config_);
  }
  optimizer_->swap_average();
  if (!maps.is_null()) {
    base::write_text_file(job_.folder / "maps.json", maps.dump() + "\n");
  }
}

void Trainer::save_lengths() {
  if (lengths_.empty()) return;
  optimizer_->swap_average();
  run::Lengths found;
  {
    const Autocast autocast(config_.train.autocast);
    found = evaluate_lengths(network_, job_.data, config_, lengths_,
                             [&](double) { report(true); });
  }
  optimizer_->swap_average();
  found.weights = "last";
  run::write_lengths(job_.folder, found);
}

void Trainer::save_solution() {
  if (!shape_.problem) return;
  optimizer_->swap_average();
  run::write_solution(job_.folder,
                      solution_of(network_, *examples_, *shape_.problem));
  optimizer_->swap_average();
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
  const RunFolder same_config(job.folder, job.config,
                              {.resume = true, .warn = job.warn});
  return info;
}

}  // namespace

run::RunInfo train(const Job& job) {
  if (const auto info = ended_run(job)) return *info;
  if (job.resume) use_path_costs_of(job.folder);
  at::set_num_threads(static_cast<int>(job.config.train.threads));
  // What earlier runs of this process left must not count as this one's.
  ::malloc_trim(0);
  Trainer trainer(job);
  return trainer.run();
}

}  // namespace polyattn::train
