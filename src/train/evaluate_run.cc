#include "train/evaluate_run.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <stdexcept>

#include "train/evaluate.h"
#include "train/loaded_run.h"
#include "train/step.h"

namespace polyattn::train {

RunEvaluation evaluate_run(const EvaluateOptions& options) {
  at::set_num_threads(options.threads);
  run::Config config = run::read_config(options.folder / "config.toml");
  if (!options.path.empty()) config.task.path = options.path;
  const auto data = load_task_data(config.task);
  const TaskShape shape = shape_of(*data, config.task);
  const LoadedRun loaded =
      load_run(options.folder, config, shape, options.best);
  const auto examples = make_examples(data, config);
  const Autocast autocast(config.train.autocast);
  const Evaluation found =
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
