#include "train/task_data.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "data/hold_out.h"
#include "data/load.h"
#include "train/limit.h"
#include "train/overloaded.h"
#include "train/physics_field.h"
#include "train/physics_task.h"
#include "train/run/tasks.h"
#include "train/text_tokens.h"

namespace polyattn::train {
namespace {

// With the points of the config, checked against its exact solution.
physics::Problem checked_problem(physics::Problem problem,
                                 const run::TaskConfig& task) {
  if (task.points > 0) problem.points = task.points;
  if (task.test_points > 0) problem.test_points = task.test_points;
  check_exact_solution(problem);
  return problem;
}

physics::Problem read_task_problem(const run::TaskConfig& task) {
  if (task.name != "problem") {
    return physics::parse_problem(physics::problem_text(task.name), task.name);
  }
  if (task.path.empty()) {
    throw data::DataError(
        "[train] task.path is empty: it must be the file of a problem, as "
        "those in configs/problems/");
  }
  return physics::read_problem(task.path);
}

TaskData read_data(const run::TaskConfig& task) {
  if (run::find_task(task.name)->kind == run::kPhysics) {
    return checked_problem(read_task_problem(task), task);
  }
  if (run::find_task(task.name)->kind == run::kTexts) {
    return data::load_text({.name = task.name, .path = task.path});
  }
  if (task.name == "imdb") {
    return data::load_imdb({.path = task.path, .max_length = task.context});
  }
  if (task.name == "recall" || task.name == "copy") {
    return data::load_probes(probe_source(task));
  }
  if (task.name == "listops") {
    return data::load_listops({.min_length = task.min_length,
                               .max_length = task.max_length,
                               .train_count = task.train_count,
                               .test_count = task.test_count,
                               .path = task.path});
  }
  if (task.name == "cifar10-pixels") {
    return data::load_pixels({.name = "cifar10", .path = task.path});
  }
  if (task.name == "pathfinder") {
    return data::load_pathfinder({.contour_length = task.contour_length,
                                  .train_count = task.train_count,
                                  .test_count = task.test_count});
  }
  if (task.name == "aan") {
    return data::load_aan({.path = task.path, .max_length = task.context});
  }
  if (task.name == "sotu-pairs") {
    return data::load_sotu_pairs({.path = task.path,
                                  .length = task.context,
                                  .train_count = task.train_count,
                                  .test_count = task.test_count});
  }
  const data::ImageSource source{
      .name = task.name, .path = task.path, .image_size = task.image_size};
  if (task.stream) return data::list_images(source);
  return data::load_images(source);
}

TaskShape image_shape(const data::ImageSplits& images) {
  if (images.train.height != images.train.width) {
    throw data::DataError(
        "[train] images of " + std::to_string(images.train.width) + " x " +
        std::to_string(images.train.height) + " pixels are not square");
  }
  return {.channels = images.train.channels,
          .image_size = images.train.height,
          .classes = static_cast<std::int64_t>(images.class_names.size())};
}

std::int64_t longest(const data::SequenceSet& set) {
  std::int64_t length = 1;
  for (std::size_t i = 0; i + 1 < set.begin.size(); ++i) {
    length = std::max(length, set.begin[i + 1] - set.begin[i]);
  }
  return length;
}

TaskShape sequence_shape(const data::SequenceSplits& sequences) {
  return {.vocabulary = sequences.vocabulary,
          .length =
              std::max({longest(sequences.train), longest(sequences.validation),
                        longest(sequences.test)}),
          .classes = static_cast<std::int64_t>(sequences.class_names.size()),
          .towers = sequences.train.towers};
}

void check_text(const data::TextSplits& text, const run::Config& config) {
  const run::TaskConfig& task = config.task;
  const std::int64_t train = train_text(text, task).size();
  const std::int64_t held = evaluated_text(text, task).size();
  if (train > task.context && held >= 2) return;
  throw std::invalid_argument(
      "[train] a text of " + std::to_string(train) +
      (text.tokens ? " tokens, and " : " bytes, and ") + std::to_string(held) +
      " held out, is too short for windows of " + std::to_string(task.context) +
      ": lower task.context" +
      (task.validation > 0 ? " or task.validation" : ""));
}

template <typename Splits>
void check_counts(const Splits& splits, const run::Config& config) {
  const auto train = limited(splits.train.count(), config.task.train_limit);
  if (train < config.train.batch) {
    throw std::invalid_argument(
        "[train] a batch of " + std::to_string(config.train.batch) +
        " needs more than the " + std::to_string(train) +
        " training examples: lower train.batch" +
        (config.task.validation > 0 ? " or task.validation" : ""));
  }
  if (evaluated_part(splits, config.task).count() == 0) {
    throw std::invalid_argument("[train] there is nothing to evaluate on");
  }
}

}  // namespace

data::ProbeSource probe_source(const run::TaskConfig& task) {
  return {.name = task.name,
          .length = task.length,
          .pairs = task.pairs,
          .train_count = task.train_count,
          .test_count = task.test_count};
}

std::shared_ptr<const TaskData> load_task_data(const run::TaskConfig& task,
                                               const std::string& tokenizer) {
  TaskData data = read_data(task);
  if (task.validation > 0) {
    std::visit(Overloaded{[](physics::Problem&) {},
                          [&](auto& splits) {
                            data::hold_out(splits, task.validation);
                          }},
               data);
  }
  if (auto* text = std::get_if<data::TextSplits>(&data)) {
    make_tokens(*text, task, tokenizer);
  }
  return std::make_shared<const TaskData>(std::move(data));
}

std::shared_ptr<const TaskData> load_run_data(
    const std::filesystem::path& folder, const run::TaskConfig& task) {
  const std::filesystem::path file = folder / kProblemFile;
  if (run::find_task(task.name)->kind != run::kPhysics ||
      !std::filesystem::exists(file)) {
    return load_task_data(task, tokenizer_of(folder, task));
  }
  return std::make_shared<const TaskData>(
      checked_problem(physics::read_problem(file), task));
}

run::ImageShape image_shape_of(const TaskShape& shape) {
  return {.channels = shape.channels,
          .size = shape.image_size,
          .classes = shape.classes};
}

TaskShape shape_of(const TaskData& data, const run::TaskConfig& task) {
  return std::visit(
      Overloaded{
          [](const data::ImageSplits& images) { return image_shape(images); },
          [&](const data::ImageFileSplits& files) {
            return TaskShape{
                .channels = 3,
                .image_size = task.image_size,
                .classes = static_cast<std::int64_t>(files.class_names.size())};
          },
          [&](const data::TextSplits& text) {
            const std::int64_t tokens =
                text.tokens ? std::ssize(text.tokens->pieces) : 256;
            return TaskShape{.vocabulary = tokens,
                             .length = task.context,
                             .classes = tokens,
                             .text = true};
          },
          [](const physics::Problem& problem) {
            return TaskShape{
                .problem = std::make_shared<const physics::Problem>(problem)};
          },
          [&](const data::ProbeSplits& probes) {
            return TaskShape{.vocabulary = probes.vocabulary,
                             .length = task.length,
                             .classes = probes.vocabulary};
          },
          [](const data::SequenceSplits& sequences) {
            return sequence_shape(sequences);
          }},
      data);
}

void check_examples(const TaskData& data, const run::Config& config) {
  std::visit(
      Overloaded{
          [&](const data::TextSplits& text) { check_text(text, config); },
          [](const physics::Problem&) {},
          [&](const auto& splits) { check_counts(splits, config); }},
      data);
}

}  // namespace polyattn::train
