#include "train/task_data.h"

#include <algorithm>
#include <string>

#include "data/load.h"
#include "train/overloaded.h"

namespace polyattn::train {
namespace {

TaskData read_data(const run::TaskConfig& task) {
  if (task.name == "sotu" || task.name == "text") {
    return data::load_text({.name = task.name, .path = task.path});
  }
  if (task.name == "imdb") {
    return data::load_imdb({.path = task.path, .max_length = task.context});
  }
  if (task.name == "listops") {
    return data::load_listops({.min_length = task.min_length,
                               .max_length = task.max_length,
                               .train_count = task.train_count,
                               .test_count = task.test_count,
                               .path = task.path});
  }
  return data::load_images(
      {.name = task.name, .path = task.path, .image_size = task.image_size});
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
  for (std::size_t i = 0; i < set.count(); ++i) {
    length = std::max(length, set.begin[i + 1] - set.begin[i]);
  }
  return length;
}

}  // namespace

std::shared_ptr<const TaskData> load_task_data(const run::TaskConfig& task) {
  return std::make_shared<const TaskData>(read_data(task));
}

TaskShape shape_of(const TaskData& data, const run::TaskConfig& task) {
  return std::visit(
      Overloaded{
          [](const data::ImageSplits& images) { return image_shape(images); },
          [&](const data::TextSplits&) {
            return TaskShape{.vocabulary = 256,
                             .length = task.context,
                             .classes = 256,
                             .text = true};
          },
          [](const data::SequenceSplits& sequences) {
            return TaskShape{.vocabulary = sequences.vocabulary,
                             .length = std::max(longest(sequences.train),
                                                longest(sequences.test)),
                             .classes = static_cast<std::int64_t>(
                                 sequences.class_names.size())};
          }},
      data);
}

}  // namespace polyattn::train
