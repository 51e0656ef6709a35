#include "train/evaluate_run.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <stdexcept>

#include "base/program.h"
#include "train/evaluate.h"
#include "train/lengths.h"
#include "train/loaded_run.h"
#include "train/step.h"
#include "train/text_tokens.h"

namespace polyattn::train {
namespace {

// A run, and the data to evaluate it on.
struct OpenedRun {
  run::Config config;  // task.validation says on which part
  std::shared_ptr<const TaskData> data;
  TaskShape shape;
  LoadedRun loaded;
};

run::Config config_of(const EvaluateOptions& options) {
  run::Config config = run::read_run_config(options.folder);
  if (!options.path.empty()) config.task.path = options.path;
  if (options.validation && config.task.validation == 0) {
    throw base::UsageError("--split validation: the run in " +
                           options.folder.string() +
                           " held nothing out (task.validation is 0)");
  }
  return config;
}

OpenedRun open_run(const EvaluateOptions& options) {
  at::set_num_threads(options.threads);
  OpenedRun run;
  run.config = config_of(options);
  const auto& task = run.config.task;
  run.data = options.path.empty()
                 ? load_run_data(options.folder, task)
                 : load_task_data(task, tokenizer_of(options.folder, task));
  run.shape = shape_of(*run.data, run.config.task);
  run.loaded = load_run(options.folder, run.config, run.shape, options.best);
  // The test set, normalised by what the run was trained on.
  if (!options.validation) run.config.task.validation = 0;
  return run;
}

}  // namespace

RunEvaluation evaluate_run(const EvaluateOptions& options) {
  const OpenedRun run = open_run(options);
  const auto examples = make_examples(run.data, run.config);
  const Autocast autocast(run.config.train.autocast);
  const run::Evaluation found = evaluate(*run.loaded.network, *examples,
                                         run.shape.text, options.progress);
  if (!std::isfinite(found.loss)) {
    throw std::runtime_error("[eval] the loss is not finite: the weights in " +
                             options.folder.string() +
                             " are damaged or overflow");
  }
  return {.evaluation = found,
          .task = run.config.task.name,
          .activation = run.config.model.activation,
          .step = run.loaded.step,
          .count = examples->test_count()};
}

RunLengths evaluate_run_lengths(const EvaluateOptions& options,
                                const std::vector<std::int64_t>& lengths) {
  const OpenedRun run = open_run(options);
  try {
    check_lengths(run.config, *run.data, lengths);
  } catch (const std::invalid_argument& error) {
    throw base::UsageError(error.what());
  }
  const Autocast autocast(run.config.train.autocast);
  RunLengths found{
      .lengths = evaluate_lengths(*run.loaded.network, run.data, run.config,
                                  lengths, options.progress),
      .task = run.config.task.name,
      .activation = run.config.model.activation,
      .step = run.loaded.step};
  found.lengths.weights = options.best ? "best" : "last";
  return found;
}

}  // namespace polyattn::train
