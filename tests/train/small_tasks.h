// Small data and configs for the tests of training.
#pragma once

#include <memory>
#include <string>

#include "support/temporary_folder.h"
#include "train/random.h"
#include "train/run/config.h"
#include "train/task_data.h"

namespace polyattn::train::testing {

using polyattn::test::TemporaryFolder;

// Images of 8 x 8 pixels of four classes: one quarter is bright, on noise.
inline data::ImageSet make_images(std::int64_t count, std::uint64_t seed) {
  data::ImageSet set{.channels = 1, .height = 8, .width = 8};
  Random random(seed, Stream::kOrder, 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::int32_t>(random.below(4));
    for (std::int64_t y = 0; y < 8; ++y) {
      for (std::int64_t x = 0; x < 8; ++x) {
        const bool bright = label == 2 * (y / 4) + x / 4;
        set.pixels.push_back(
            static_cast<std::uint8_t>(random.below(60) + (bright ? 150 : 0)));
      }
    }
    set.labels.push_back(label);
  }
  return set;
}

inline std::shared_ptr<const TaskData> image_data(std::int64_t count = 64) {
  return std::make_shared<const TaskData>(
      data::ImageSplits{.train = make_images(count, 1),
                        .test = make_images(count / 2, 2),
                        .class_names = {"a", "b", "c", "d"}});
}

inline run::Config image_config() {
  run::Config config = run::default_config("fashion-mnist");
  config.model.dim = 16;
  config.model.depth = 2;
  config.model.heads = 2;
  config.model.mlp = 32;
  config.model.patch = 2;
  config.train.threads = 2;
  config.train.batch = 16;
  config.train.steps = 12;
  config.record.every = 2;
  config.record.norms = 3;
  config.record.evaluate = 5;
  config.record.checkpoint = 4;
  return config;
}

inline std::shared_ptr<const TaskData> text_data() {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the quick brown fox jumps. ";
  return std::make_shared<const TaskData>(
      data::TextSplits{.train = text, .test = text.substr(0, 500)});
}

inline run::Config text_config() {
  run::Config config = run::default_config("sotu");
  config.model.dim = 16;
  config.model.depth = 2;
  config.model.heads = 2;
  config.model.mlp = 32;
  config.task.context = 24;
  config.train.threads = 2;
  config.train.batch = 8;
  config.train.steps = 10;
  config.record.evaluate = 5;
  return config;
}

inline std::shared_ptr<const TaskData> sequence_data() {
  Random random(5, Stream::kOrder, 0);
  const auto make = [&](std::int64_t count) {
    data::SequenceSet set;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto label = static_cast<std::int32_t>(random.below(2));
      const std::int64_t length = 2 + random.below(9);
      for (std::int64_t j = 0; j < length; ++j) {
        set.tokens.push_back(
            static_cast<std::uint8_t>(1 + 3 * label + random.below(3)));
      }
      set.begin.push_back(static_cast<std::int64_t>(set.tokens.size()));
      set.labels.push_back(label);
    }
    return set;
  };
  return std::make_shared<const TaskData>(
      data::SequenceSplits{.train = make(70),
                           .test = make(33),
                           .vocabulary = 8,
                           .class_names = {"low", "high"}});
}

// Pairs of sequences of low or high tokens: are both of one kind? Their lengths
// differ.
inline std::shared_ptr<const TaskData> pair_data() {
  Random random(6, Stream::kOrder, 0);
  const auto make = [&](std::int64_t count) {
    data::SequenceSet set;
    set.towers = 2;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t kinds[] = {random.below(2), random.below(2)};
      for (const std::int64_t kind : kinds) {
        const std::int64_t length = 2 + random.below(9);
        for (std::int64_t j = 0; j < length; ++j) {
          set.tokens.push_back(
              static_cast<std::uint8_t>(1 + 3 * kind + random.below(3)));
        }
        set.begin.push_back(static_cast<std::int64_t>(set.tokens.size()));
      }
      set.labels.push_back(kinds[0] == kinds[1] ? 1 : 0);
    }
    return set;
  };
  return std::make_shared<const TaskData>(
      data::SequenceSplits{.train = make(70),
                           .test = make(33),
                           .vocabulary = 8,
                           .class_names = {"two kinds", "one kind"}});
}

inline run::Config pair_config() {
  run::Config config = run::default_config("sotu-pairs");
  config.model.dim = 16;
  config.model.heads = 2;
  config.model.mlp = 32;
  config.train.threads = 2;
  config.train.batch = 8;
  config.train.steps = 10;
  config.record.evaluate = 5;
  return config;
}

inline run::Config sequence_config() {
  run::Config config = run::default_config("listops");
  config.model.dim = 16;
  config.model.heads = 2;
  config.model.mlp = 32;
  config.train.threads = 2;
  config.train.batch = 8;
  config.train.steps = 10;
  config.record.evaluate = 5;
  return config;
}

inline run::Config probe_config(const char* task) {
  run::Config config = run::default_config(task);
  config.task.length = 16;
  config.task.pairs = 2;
  config.task.train_count = 200;
  config.task.test_count = 40;
  config.model.dim = 16;
  config.model.mlp = 32;
  config.train.threads = 2;
  config.train.batch = 8;
  config.train.steps = 10;
  config.record.evaluate = 5;
  return config;
}

}  // namespace polyattn::train::testing
