// The data of a task in memory, or a list of its files, and what a model must
// know of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>

#include "data/load.h"
#include "data/sets.h"
#include "physics/problem.h"
#include "train/run/config.h"
#include "train/run/records.h"

namespace polyattn::train {

// Read once, shared by all runs of a comparison.
using TaskData =
    std::variant<data::ImageSplits, data::ImageFileSplits, data::TextSplits,
                 data::SequenceSplits, data::ProbeSplits, physics::Problem>;

// Of recall and copy.
data::ProbeSource probe_source(const run::TaskConfig& task);

// With what task.validation holds out as its validation part, and a text in
// tokens of task.tokenizer. `tokenizer`: if not empty, what stands in for that,
// the file of a run (train/text_tokens.h). Throws data::DataError.
std::shared_ptr<const TaskData> load_task_data(
    const run::TaskConfig& task, const std::string& tokenizer = {});

// The same for what goes on in the folder of a run, which keeps its problem and
// its tokenizer: files may have changed since.
std::shared_ptr<const TaskData> load_run_data(
    const std::filesystem::path& folder, const run::TaskConfig& task);

// The part of *Splits that a run is evaluated on.
template <typename Splits>
const auto& evaluated_part(const Splits& splits, const run::TaskConfig& task) {
  return task.validation > 0 ? splits.validation : splits.test;
}

// Throws std::invalid_argument if there is less than a batch, or a window of a
// text, to train on, or nothing to evaluate on.
void check_examples(const TaskData& data, const run::Config& config);

// What a model must know of the data.
struct TaskShape {
  std::int64_t channels = 0;    // images
  std::int64_t image_size = 0;  // images
  std::int64_t vocabulary = 0;  // tokens
  std::int64_t length = 0;      // longest sequence of tokens
  std::int64_t classes = 0;
  std::int64_t towers = 1;  // sequences of an example
  bool text = false;        // the next token is predicted
  std::shared_ptr<const physics::Problem> problem = {};
};

run::ImageShape image_shape_of(const TaskShape& shape);

// Of all parts together, so that the model does not depend on what is held out.
TaskShape shape_of(const TaskData& data, const run::TaskConfig& task);

}  // namespace polyattn::train
