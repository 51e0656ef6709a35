#include "train/evaluate_run.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <stdexcept>

#include "base/program.h"
#include "train/evaluate.h"
#include "train/loaded_run.h"
#include "train/step.h"

namespace polyattn::train {

RunEvaluation evaluate_run(const EvaluateOptions& options) {
  at::set_num_threads(options.threads);
  run::Config config = run::read_run_config(options.folder);
  if (!options.path.empty()) config.task.path = options.path;
  if (options.validation && config.task.validation == 0) {
    throw base::UsageError("--split validation: the run in " +
                           options.folder.string() +
                           " held nothing out (task.validation is 0)");
  }
  const auto data = load_task_data(config.task);
  const TaskShape shape = shape_of(*data, config.task);
  const LoadedRun loaded =
      load_run(options.folder, config, shape, options.best);
  // The test set, normalised by what the run was trained on.
  if (!options.validation) config.task.validation = 0;
  const auto examples = make_examples(data, config);
  const Autocast autocast(config.train.autocast);
  const run::Evaluation found =
      evaluate(*loaded.network, *examples, shape.text, options.progress);
  if (!std::isfinite(found.loss)) {
    throw std::runtime_error("[eval] the loss is not finite: the weights in " +
                             options.folder.string() +
                             " are damaged or overflow");
  }
  return {.evaluation = found,
          .task = config.task.name,
          .activation = config.model.activation,
          .step = loaded.step,
          .count = examples->test_count()};
}

}  // namespace polyattn::train
