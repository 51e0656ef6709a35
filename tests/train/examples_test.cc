#include "train/examples.h"

#include <gtest/gtest.h>

#include <set>

#include "data/hold_out.h"
#include "train/mixup.h"
#include "train/network.h"
#include "train/prefetch.h"
#include "train/small_tasks.h"

namespace polyattn::train::examples_test {

using testing::image_config;
using testing::image_data;

const data::ImageSplits& images_of(
    const std::shared_ptr<const TaskData>& data) {
  return std::get<data::ImageSplits>(*data);
}

TEST(ImageExamples, AreNormalisedOverTheTrainingSet) {
  const auto data = image_data(256);
  run::Config config = image_config();
  config.train.batch = 256;
  const auto examples = make_examples(data, config);
  const Batch batch = examples->train_batch(0);
  EXPECT_EQ(batch.inputs.sizes(), (torch::IntArrayRef{256, 1, 8, 8}));
  EXPECT_NEAR(batch.inputs.mean().item<double>(), 0, 1e-5);
  EXPECT_NEAR(batch.inputs.square().mean().item<double>(), 1, 1e-4);
  EXPECT_EQ(batch.items, 256);

  // What a record says of it gives the same numbers.
  const auto pixels = examples->pixels();
  ASSERT_TRUE(pixels);
  const std::uint8_t first = images_of(data).test.pixels[0];
  EXPECT_NEAR(examples->test_batch(0).inputs[0][0][0][0].item<double>(),
              (first / 255.0 - pixels->mean.at(0)) / pixels->std.at(0), 1e-5);
}

TEST(ImageExamples, TestBatchesAreTheWholeSetInOrder) {
  const auto data = image_data(1200);
  const auto examples = make_examples(data, image_config());
  ASSERT_EQ(examples->test_count(), 600);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < examples->test_batches(); ++i) {
    const Batch batch = examples->test_batch(i);
    const auto* first = batch.targets.data_ptr<std::int64_t>();
    labels.insert(labels.end(), first, first + batch.targets.numel());
  }
  const auto& expected = images_of(data).test.labels;
  EXPECT_EQ(labels,
            (std::vector<std::int64_t>(expected.begin(), expected.end())));
}

TEST(ImageExamples, LimitsLeaveTheFirstOnes) {
  run::Config config = image_config();
  config.task.train_limit = 32;
  config.task.test_limit = 5;
  const auto examples = make_examples(image_data(), config);
  EXPECT_EQ(examples->batches_per_epoch(), 2);
  EXPECT_EQ(examples->test_count(), 5);
}

// The data of load_task_data() with task.validation.
std::shared_ptr<const TaskData> held_out(
    const std::shared_ptr<const TaskData>& data, double share) {
  TaskData parts = *data;
  std::visit(
      [&](auto& splits) {
        if constexpr (requires { data::hold_out(splits, share); }) {
          data::hold_out(splits, share);
        }
      },
      parts);
  return std::make_shared<const TaskData>(std::move(parts));
}

TEST(ImageExamples, OfValidationDataAreNormalisedByTheRest) {
  run::Config config = image_config();
  config.task.validation = 0.25;
  config.train.batch = 48;
  const auto data = held_out(image_data(64), 0.25);
  const auto examples = make_examples(data, config);
  EXPECT_EQ(examples->test_count(), 16);
  const Batch trained = examples->train_batch(0);  // all that is left
  EXPECT_NEAR(trained.inputs.mean().item<double>(), 0, 1e-5);
  const Batch held = examples->test_batch(0);
  const auto& labels = images_of(data).validation.labels;
  for (std::int64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(held.targets[i].item<std::int64_t>(),
              labels[static_cast<std::size_t>(i)]);
  }
  // The same part for every seed, and the limits are of what is left.
  config.train.seed = 9;
  config.train.batch = 4;
  config.task.train_limit = 20;
  const auto other = make_examples(data, config);
  EXPECT_EQ(other->batches_per_epoch(), 5);
  EXPECT_TRUE(torch::equal(other->test_batch(0).targets, held.targets));
}

TEST(Examples, RefuseAShareThatLeavesNoBatchOrWindow) {
  run::Config images = image_config();
  images.task.validation = 0.5;
  images.train.batch = 40;
  const auto half = held_out(image_data(64), 0.5);
  EXPECT_THROW(check_examples(*half, images), std::invalid_argument);
  images.train.batch = 32;
  EXPECT_NO_THROW(check_examples(*half, images));
  // Nothing was held out of this.
  EXPECT_THROW(check_examples(*image_data(64), images), std::invalid_argument);
  run::Config text = testing::text_config();
  text.task.context = 3000;
  EXPECT_NO_THROW(check_examples(*testing::text_data(), text));
  text.task.validation = 0.5;
  EXPECT_THROW(check_examples(*held_out(testing::text_data(), 0.5), text),
               std::invalid_argument);
}

TEST(TaskShape, IsThatOfAllPartsTogether) {
  const run::Config config = testing::sequence_config();
  const auto data = testing::sequence_data();
  for (const double share : {0.1, 0.5}) {
    EXPECT_EQ(shape_of(*held_out(data, share), config.task).length,
              shape_of(*data, config.task).length);
  }
}

// An image whose pixel tells its place, so that what moved where can be read.
std::shared_ptr<const TaskData> marked_image() {
  data::ImageSet set{.channels = 1, .height = 8, .width = 8};
  for (int i = 0; i < 64; ++i) {
    set.pixels.push_back(static_cast<std::uint8_t>(i + 1));
  }
  set.labels = {0};
  return std::make_shared<const TaskData>(
      data::ImageSplits{.train = set, .test = set, .class_names = {"only"}});
}

// The levels of the pixels, back from the normalised values: 0 is outside.
std::vector<int> levels_of(const torch::Tensor& image,
                           const torch::Tensor& plain) {
  const double low = plain[0].item<double>();
  const double unit = plain[1].item<double>() - low;
  std::vector<int> levels;
  for (std::int64_t i = 0; i < 64; ++i) {
    levels.push_back(static_cast<int>(
        std::lround((image[i].item<double>() - low) / unit + 1)));
  }
  return levels;
}

TEST(ImageExamples, FlipsAndMoves) {
  run::Config config = image_config();
  config.train.batch = 1;
  const auto plain =
      make_examples(marked_image(), config)->test_batch(0).inputs.flatten();
  config.augment.flip = true;
  config.augment.crop = 2;
  const auto examples = make_examples(marked_image(), config);
  std::set<std::tuple<int, int, bool>> seen;
  for (std::int64_t index = 0; index < 400; ++index) {
    const auto levels =
        levels_of(examples->train_batch(index).inputs.flatten(), plain);
    int matches = 0;
    for (const bool flipped : {false, true}) {
      for (int dy = -2; dy <= 2; ++dy) {
        for (int dx = -2; dx <= 2; ++dx) {
          bool same = true;
          for (int y = 0; y < 8; ++y) {
            for (int x = 0; x < 8; ++x) {
              const int from_x = (flipped ? 7 - x : x) + dx;
              const int from_y = y + dy;
              const bool inside =
                  from_x >= 0 && from_x < 8 && from_y >= 0 && from_y < 8;
              same &= levels[static_cast<std::size_t>(8 * y + x)] ==
                      (inside ? 8 * from_y + from_x + 1 : 0);
            }
          }
          if (same) {
            ++matches;
            seen.insert({dx, dy, flipped});
          }
        }
      }
    }
    ASSERT_EQ(matches, 1) << index;
  }
  EXPECT_EQ(seen.size(), 50U);  // all of them, in 400 draws
}

TEST(ImageExamples, MixupMixesWithTheReverse) {
  Batch batch;
  batch.inputs = torch::arange(12, torch::kFloat).view({3, 1, 2, 2}).clone();
  batch.targets = torch::tensor({5, 6, 7}, torch::kLong);
  batch.share = 0.75;
  const torch::Tensor before = batch.inputs.clone();
  mix_with_reverse(batch);
  EXPECT_TRUE(
      torch::allclose(batch.inputs, 0.75 * before + 0.25 * before.flip(0)));
  EXPECT_TRUE(torch::equal(batch.others, batch.targets.flip(0)));
}

TEST(TextExamples, TargetsFollowInputs) {
  const auto examples =
      make_examples(testing::text_data(), testing::text_config());
  const Batch batch = examples->train_batch(3);
  EXPECT_EQ(batch.inputs.sizes(), (torch::IntArrayRef{8, 24}));
  EXPECT_TRUE(torch::equal(batch.inputs.slice(1, 1),
                           batch.targets.view({8, 24}).slice(1, 0, -1)));
}

TEST(TextExamples, EveryTestByteButTheFirstIsPredictedOnce) {
  const auto data = testing::text_data();
  const std::string& text = std::get<data::TextSplits>(*data).test;
  const auto examples = make_examples(data, testing::text_config());
  std::string predicted;
  for (std::int64_t i = 0; i < examples->test_batches(); ++i) {
    const Batch batch = examples->test_batch(i);
    for (std::int64_t j = 0; j < batch.targets.numel(); ++j) {
      const auto target = batch.targets[j].item<std::int64_t>();
      if (target >= 0) predicted.push_back(static_cast<char>(target));
    }
  }
  EXPECT_EQ(predicted, text.substr(1));
  EXPECT_EQ(examples->test_count(),
            static_cast<std::int64_t>(predicted.size()));
}

TEST(TextExamples, RefusesATextShorterThanItsWindows) {
  run::Config config = testing::text_config();
  config.task.context = 100000;
  EXPECT_THROW(make_examples(testing::text_data(), config),
               std::invalid_argument);
}

TEST(SequenceExamples, ArePaddedWithZerosToTheLongest) {
  const auto examples =
      make_examples(testing::sequence_data(), testing::sequence_config());
  for (std::int64_t i = 0; i < examples->batches_per_epoch(); ++i) {
    const Batch batch = examples->train_batch(i);
    EXPECT_EQ(batch.inputs.size(1), batch.lengths.max().item<std::int64_t>());
    const torch::Tensor real = batch.inputs.ne(0).sum(1);
    EXPECT_TRUE(torch::equal(real, batch.lengths));
    EXPECT_TRUE(
        torch::equal(batch.inputs.select(1, 0).gt(3), batch.targets.eq(1)));
  }
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < examples->test_batches(); ++i) {
    count += examples->test_batch(i).items;
  }
  EXPECT_EQ(count, 33);
}

TEST(SequenceExamples, KeepPairsTogether) {
  const auto data = testing::pair_data();
  const auto examples = make_examples(data, testing::pair_config());
  EXPECT_STREQ(examples->unit(), "pairs");
  EXPECT_EQ(examples->batches_per_epoch(), 8);
  const auto check = [](const Batch& batch) {
    ASSERT_EQ(batch.inputs.size(0), 2 * batch.items);
    ASSERT_EQ(batch.targets.numel(), batch.items);
    EXPECT_EQ(batch.inputs.size(1), batch.lengths.max().item<std::int64_t>());
    EXPECT_TRUE(torch::equal(batch.inputs.ne(0).sum(1), batch.lengths));
    const torch::Tensor high = batch.inputs.select(1, 0).gt(3).view({-1, 2});
    EXPECT_TRUE(torch::equal(high.select(1, 0).eq(high.select(1, 1)),
                             batch.targets.eq(1)));
  };
  for (std::int64_t i = 0; i < examples->batches_per_epoch(); ++i) {
    check(examples->train_batch(i));
  }
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < examples->test_batches(); ++i) {
    check(examples->test_batch(i));
    count += examples->test_batch(i).items;
  }
  EXPECT_EQ(count, 33);
  EXPECT_EQ(shape_of(*data, testing::pair_config().task).towers, 2);
}

// The model of the one, the batches of the other.
TEST(SequenceExamples, OfPairsNeedAModelThatReadsPairs) {
  const auto refusal = [](const run::Config& of_model, const auto& model_data,
                          const run::Config& of_data, const auto& data) {
    const auto network =
        make_network(of_model, shape_of(*model_data, of_model.task));
    const Batch batch = make_examples(data, of_data)->train_batch(0);
    try {
      network->logits(batch);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  const auto one = testing::sequence_config(), two = testing::pair_config();
  const auto sequences = testing::sequence_data(), pairs = testing::pair_data();
  EXPECT_EQ(refusal(two, pairs, two, pairs), "");
  EXPECT_EQ(refusal(one, sequences, two, pairs),
            "[train] a batch has 16 sequences for 8 examples, but the model "
            "reads 1 for each");
  EXPECT_EQ(refusal(two, pairs, one, sequences),
            "[train] a batch has 8 sequences for 8 examples, but the model "
            "reads 2 for each");
}

// The tables of the published models have as many rows for any data.
TEST(SequenceNetwork, OfNystromformerHasItsSizes) {
  const std::pair<const char*, std::int64_t> counts[] = {
      {"listops", 209802},
      {"imdb", 370562},
      {"sotu-pairs", 395138},
      {"pathfinder", 173954}};
  for (const auto& [task, count] : counts) {
    const auto config = run::default_config(task, "lra-nystromformer");
    TaskShape shape{.vocabulary = 11, .length = 20, .classes = 2};
    if (config.task.name == "listops") shape.classes = 10;
    if (config.task.name == "sotu-pairs") shape.towers = 2;
    const auto network = make_network(config, shape);
    EXPECT_EQ(parameter_count(network->module()), count) << task;
  }
  const auto config = run::default_config("pathfinder", "lra-nystromformer");
  const auto refusal = [&](const TaskShape& shape) {
    try {
      make_network(config, shape);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  EXPECT_EQ(refusal({.vocabulary = 9, .length = 1025, .classes = 2}),
            "[train] a sequence of 1025 tokens is longer than the 1024 "
            "positions that lra-nystromformer has of pathfinder");
  EXPECT_EQ(refusal({.vocabulary = 513, .length = 8, .classes = 2}),
            "[train] pathfinder has 513 tokens, but lra-nystromformer 512");
}

Batch numbered(std::int64_t index) {
  Batch batch;
  batch.items = index;
  return batch;
}

TEST(Prefetcher, GivesBatchesInOrderAndThenNoMore) {
  Prefetcher prefetcher(numbered, 3, 40);
  for (std::int64_t i = 3; i < 40; ++i) EXPECT_EQ(prefetcher.next().items, i);
  EXPECT_THROW(prefetcher.next(), std::out_of_range);
}

TEST(Prefetcher, HandsOverWhatTheMakerThrew) {
  Prefetcher prefetcher(
      [](std::int64_t index) {
        if (index == 2) throw std::runtime_error("bad batch");
        return numbered(index);
      },
      0, 9);
  EXPECT_EQ(prefetcher.next().items, 0);
  EXPECT_EQ(prefetcher.next().items, 1);
  EXPECT_THROW(prefetcher.next(), std::runtime_error);
}

TEST(Prefetcher, EndsWhileItsQueueIsFull) {
  const Prefetcher unread(numbered, 0, 1000000);
}

}  // namespace polyattn::train::examples_test
