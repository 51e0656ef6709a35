#include "train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "data/hold_out.h"
#include "polyattn/plan.h"
#include "polyattn/version.h"
#include "support/records.h"
#include "train/run/comparison.h"
#include "train/small_tasks.h"

namespace polyattn::train::trainer_test {

using polyattn::test::timeless;
using testing::image_config;
using testing::image_data;
using testing::TemporaryFolder;

Job make_job(const run::Config& config, std::shared_ptr<const TaskData> data,
             std::filesystem::path folder) {
  Job job;
  job.config = config;
  job.data = std::move(data);
  job.folder = std::move(folder);
  return job;
}

TEST(Train, LeavesACompleteFolder) {
  const TemporaryFolder folder;
  const auto info =
      train(make_job(image_config(), image_data(), folder / "run"));
  EXPECT_EQ(info.state, run::RunState::kFinished);
  EXPECT_EQ(info.step, 12);
  EXPECT_EQ(info.tokens, 16);
  EXPECT_EQ(info.test_count, 32);
  EXPECT_GT(info.max_weight_norm, 0);
  EXPECT_GT(info.max_jacobian_norm, 0);
  ASSERT_TRUE(info.result && info.result->accuracy);
  EXPECT_EQ(run::read_run_info(folder / "run").result, info.result);
  EXPECT_EQ(run::config_text(run::read_config(folder / "run/config.toml")),
            run::config_text(image_config()));

  std::map<std::string, int> kinds;
  for (const auto& record : timeless(folder / "run")) {
    ++kinds[record.at("kind").get<std::string>()];
  }
  EXPECT_EQ(kinds["train"], 6);  // every second of twelve
  EXPECT_EQ(kinds["eval"], 3);   // 5, 10, 12
  EXPECT_EQ(kinds["norms"], 5);  // 1, 3, 6, 9, 12
  EXPECT_TRUE(std::filesystem::exists(
      folder / "run/checkpoints/step-00000012.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(
      folder / "run/checkpoints/step-00000004.safetensors"));
}

TEST(Train, SaysThatItWasEvaluatedOnValidationData) {
  const TemporaryFolder folder;
  run::Config config = image_config();
  EXPECT_FALSE(train(make_job(config, image_data(), folder / "test")).split);
  config.task.validation = 0.25;
  config.train.steps = 2;
  auto splits = std::get<data::ImageSplits>(*image_data());
  data::hold_out(splits, 0.25);
  train(make_job(config, std::make_shared<const TaskData>(std::move(splits)),
                 folder / "validation"));
  const auto info = run::read_run_info(folder / "validation");
  EXPECT_EQ(info.split, run::kValidation);
  EXPECT_EQ(info.test_count, 16);
}

// What the comparison is by: records.h says which figure a task has.
TEST(Train, ATextHasBitsPerByteAndNoAccuracy) {
  const TemporaryFolder folder;
  const auto info = train(
      make_job(testing::text_config(), testing::text_data(), folder / "run"));
  ASSERT_TRUE(info.result && info.result->bits_per_byte);
  EXPECT_FALSE(info.result->accuracy);
  EXPECT_NEAR(*info.result->bits_per_byte, info.result->loss / std::log(2.0),
              1e-12);
  EXPECT_EQ(run::compare_runs({info}).figure, run::Figure::kBitsPerByte);
}

TEST(Train, SameSeedSameNumbersOtherSeedOthers) {
  const TemporaryFolder folder;
  run::Config config = image_config();
  config.model.dropout = 0.1;
  config.augment.flip = true;
  config.augment.crop = 1;
  config.augment.mixup = 0.3;
  train(make_job(config, image_data(), folder / "a"));
  train(make_job(config, image_data(), folder / "b"));
  config.train.seed = 2;
  train(make_job(config, image_data(), folder / "c"));
  EXPECT_EQ(timeless(folder / "a"), timeless(folder / "b"));
  EXPECT_NE(timeless(folder / "a"), timeless(folder / "c"));
}

struct Interrupted {
  const char* name;
  run::Config config;
  std::shared_ptr<const TaskData> data;
  double left = 0.5;  // at most, of the first loss, after 150 steps
};

std::vector<Interrupted> interrupted_cases() {
  run::Config images = image_config();
  images.model.dropout = 0.1;
  images.model.drop_path = 0.2;
  images.train.ema = 0.9;
  images.train.accumulate = 2;
  images.augment.crop = 1;
  run::Config text = testing::text_config();
  text.record.checkpoint = 3;
  run::Config sequences = testing::sequence_config();
  sequences.model.attention_dropout = 0.1;
  run::Config pairs = testing::pair_config();
  pairs.model.activation = "x^2/sqrt(N)";
  run::Config published = pairs;
  published.model.pooling = "padded";
  published.model.head = "mlp";
  published.model.mask_zeros = true;
  published.model.attention_dropout = 0.1;
  published.model.attention = "nystrom";
  published.model.landmarks = 2;
  published.model.landmark_conv = 3;
  run::Config parts = text;
  parts.model.activation = "x^2/sqrt(N)";
  parts.model.output_norm = "rms";
  parts.model.output_gate = true;
  parts.model.center_values = true;
  parts.model.short_conv = 4;
  parts.model.window = 8;
  run::Config decay = text;
  decay.model.activation = "x^2/sqrt(N)";
  decay.model.decay = "gate";
  run::Config probe = testing::probe_config("recall");
  probe.model.activation = "x^2/sqrt(N)";
  probe.model.decay = "head";
  probe.model.window = 4;
  return {
      {"images", images, image_data(512)},
      {"text", text, testing::text_data()},
      {"text with decay", decay, testing::text_data()},
      // Which values there are is learned at once, which one to recall
      // takes thousands of steps.
      {"probe with decay and a window", probe, load_task_data(probe.task), 0.9},
      {"text with all parts", parts, testing::text_data()},
      {"sequences", sequences, testing::sequence_data()},
      {"pairs", pairs, testing::pair_data(), 0.9},
      {"pairs as published", published, testing::pair_data(), 0.9}};
}

// Stopped after every single step, each time by another trainer.
TEST(Train, AnInterruptedRunGivesTheSameBits) {
  for (const Interrupted& c : interrupted_cases()) {
    const TemporaryFolder folder;
    train(make_job(c.config, c.data, folder / "whole"));
    int sessions = 0;
    for (;; ++sessions) {
      ASSERT_LT(sessions, 100) << c.name;
      Job job = make_job(c.config, c.data, folder / "parts");
      int asked = 0;
      job.resume = true;
      job.stop = [&] { return ++asked > 1 + sessions % 3; };
      if (train(job).state == run::RunState::kFinished) break;
    }
    EXPECT_GE(sessions, 3) << c.name;
    EXPECT_EQ(timeless(folder / "whole"), timeless(folder / "parts")) << c.name;
  }
}

// As after kill -9: records and a checkpoint beyond what the last one knows.
TEST(Train, WhatWasWrittenAfterTheCheckpointIsWrittenAgain) {
  const TemporaryFolder folder;
  train(make_job(image_config(), image_data(), folder / "whole"));
  Job job = make_job(image_config(), image_data(), folder / "parts");
  int asked = 0;
  job.stop = [&] { return ++asked > 6; };
  train(job);
  {
    std::ofstream metrics(folder / "parts/metrics.jsonl", std::ios::app);
    metrics << R"({"kind":"train","step":7,"loss":1})"
            << "\n{\"kind\":\"tr";
  }
  job.stop = [] { return false; };
  job.resume = true;
  train(job);
  EXPECT_EQ(timeless(folder / "whole"), timeless(folder / "parts"));
}

// Other costs may mean another path of attention, and so other bits.
TEST(Train, GoesOnWithThePathCostsItBeganWith) {
  const TemporaryFolder folder;
  PathCosts begun = path_costs(), later = begun;
  begun.forward.head += 1;
  later.forward.head += 2;
  set_path_costs(begun);
  Job job = make_job(image_config(), image_data(), folder / "run");
  int asked = 0;
  job.stop = [&] { return ++asked > 2; };
  EXPECT_EQ(train(job).path_costs, to_string(begun));
  set_path_costs(later);
  job.stop = [] { return false; };
  job.resume = true;
  EXPECT_EQ(train(job).path_costs, to_string(begun));
  EXPECT_EQ(path_costs(), begun);
  set_path_costs(std::nullopt);
}

TEST(Train, SaysThatItGoesOnWithAnotherBlas) {
  const TemporaryFolder folder;
  Job job = make_job(image_config(), image_data(), folder / "run");
  std::vector<std::string> warnings;
  job.warn = [&](const std::string& text) { warnings.push_back(text); };
  job.resume = true;
  const auto stop_after = [&](int steps) {
    job.stop = [steps]() mutable { return steps-- <= 0; };
    return train(job).blas;
  };
  const auto blas = stop_after(5);
  EXPECT_EQ(stop_after(2), blas);
  EXPECT_TRUE(warnings.empty()) << warnings.front();
  run::RunInfo info = run::read_run_info(folder / "run");
  info.blas = "OpenBLAS 0.1, Old";
  run::write_run_info(folder / "run", info);
  EXPECT_EQ(stop_after(2), blas);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].find("the run began with OpenBLAS 0.1, Old and goes"),
            0U)
      << warnings[0];
}

// A folder of a build that knew no number yet, or had another.
TEST(Train, SaysThatItGoesOnWithOtherKernels) {
  const TemporaryFolder folder;
  std::vector<std::string> warnings;
  const auto stop_after = [&](const run::Config& config, int steps) {
    Job job = make_job(config, image_data(), folder / "run");
    job.warn = [&](const std::string& text) { warnings.push_back(text); };
    job.resume = true;
    job.stop = [steps]() mutable { return steps-- <= 0; };
    return train(job).kernel_bits;
  };
  const auto resumed_with = [&](const run::Config& config,
                                std::optional<std::int64_t> bits) {
    std::filesystem::remove_all(folder / "run");
    warnings.clear();
    EXPECT_EQ(stop_after(config, 3), kKernelBits);
    EXPECT_TRUE(warnings.empty());
    run::RunInfo info = run::read_run_info(folder / "run");
    info.kernel_bits = bits;
    run::write_run_info(folder / "run", info);
    // It says so once: then the folder has the number of what goes on.
    EXPECT_EQ(stop_after(config, 1), kKernelBits);
    EXPECT_EQ(stop_after(config, 1), kKernelBits);
    return warnings;
  };
  run::Config config = image_config();
  EXPECT_TRUE(resumed_with(config, kKernelBits).empty());
  EXPECT_TRUE(resumed_with(config, std::nullopt).empty());
  EXPECT_EQ(resumed_with(config, kKernelBits + 1),
            (std::vector<std::string>{
                "the run began with kernels of attention whose bits have the "
                "number " +
                std::to_string(kKernelBits + 1) + ", and goes on with " +
                std::to_string(kKernelBits) +
                ": rounding and dropped weights may differ"}));
  config.model.attention_dropout = 0.25;
  EXPECT_TRUE(resumed_with(config, kKernelBits).empty());
  EXPECT_EQ(resumed_with(config, std::nullopt),
            (std::vector<std::string>{
                "the run began with a build that drew the weights that "
                "model.attention_dropout 0.25 removes in another way: from "
                "step 3 on others are dropped"}));
}

TEST(Train, AFinishedRunIsNotRepeated) {
  const TemporaryFolder folder;
  Job job = make_job(image_config(), image_data(), folder / "run");
  const auto first = train(job);
  job.resume = true;
  job.progress = [](const Progress&) { FAIL() << "a step was made"; };
  EXPECT_EQ(train(job).started, first.started);
}

TEST(Train, RefusesAFolderOfAnotherRun) {
  const TemporaryFolder folder;
  Job job = make_job(image_config(), image_data(), folder / "run");
  train(job);
  EXPECT_THROW(train(job), run::RecordError);
  job.resume = true;
  job.config.train.lr = 0.123;
  try {
    train(job);
    FAIL() << "another config was taken";
  } catch (const base::JsonError& error) {
    EXPECT_NE(std::string(error.what()).find("0.123"), std::string::npos)
        << error.what();
  }
}

TEST(Train, AccumulatedBatchesAreALargeBatch) {
  const TemporaryFolder folder;
  run::Config config = image_config();
  config.train.steps = 4;
  config.train.batch = 64;
  const auto large = train(make_job(config, image_data(), folder / "large"));
  config.train.batch = 16;
  config.train.accumulate = 4;
  const auto parts = train(make_job(config, image_data(), folder / "parts"));
  // The same 64 images in another order; sums of 64 terms in f32, four steps.
  EXPECT_NEAR(large.result->loss, parts.result->loss, 1e-3);
}

// The first step: the same weights and the same 64 images, in one batch or
// four.
TEST(Train, NormsAreOfAllBatchesOfAStep) {
  const TemporaryFolder folder;
  run::Config config = image_config();
  config.train.steps = 1;
  config.train.batch = 64;
  train(make_job(config, image_data(), folder / "large"));
  config.train.batch = 16;
  config.train.accumulate = 4;
  train(make_job(config, image_data(), folder / "parts"));
  const auto norms_of = [&](const char* name) {
    for (const base::Json& record : timeless(folder / name)) {
      if (record.at("kind") == "norms") return record;
    }
    return base::Json();
  };
  const base::Json large = norms_of("large"), parts = norms_of("parts");
  for (const char* key : {"weight_mean", "weight_max", "jacobian_mean",
                          "jacobian_max", "max_abs_score"}) {
    for (std::size_t layer = 0; layer < 2; ++layer) {
      for (std::size_t head = 0; head < 2; ++head) {
        const double value = large.at(key)[layer][head].get<double>();
        EXPECT_NEAR(parts.at(key)[layer][head].get<double>(), value,
                    1e-5 * value)
            << key;
      }
    }
  }
}

// The largest norm of an attention matrix in each norms record.
std::vector<double> largest_norms(const std::filesystem::path& folder) {
  std::vector<double> norms;
  for (const auto& record : timeless(folder)) {
    if (record.at("kind") != "norms") continue;
    double largest = 0;
    for (const auto& layer : record.at("weight_max")) {
      for (const auto& head : layer) {
        largest = std::max(largest, head.get<double>());
      }
    }
    norms.push_back(largest);
  }
  return norms;
}

TEST(Train, HoldsNormsByRescalingAndByAPenalty) {
  run::Config config = image_config();
  config.model.activation = "x^3/sqrt(N)";
  config.model.start = "plain";
  config.model.qk_gain = 3;
  config.train.steps = 60;
  config.train.lr = 0.01;
  const TemporaryFolder folder;
  const auto norms_of = [&](const char* clamp) {
    config.model.norm_clamp = clamp;
    config.model.norm_factor = clamp == std::string("rescale") ? 0.5 : 1;
    config.train.norm_penalty = clamp == std::string("penalty") ? 10 : 0.1;
    const auto info = train(make_job(config, image_data(), folder / clamp));
    EXPECT_EQ(info.state, run::RunState::kFinished);
    return largest_norms(folder / clamp);
  };
  const auto free = norms_of("none");
  for (const double norm : norms_of("rescale")) {
    EXPECT_GE(norm, 0.5 * (1 - 1e-5));      // rows that are uniform: factor 1
    EXPECT_LE(norm, 0.5 * 4 * (1 + 1e-5));  // rows with one key: sqrt(16)
  }
  const auto penalised = norms_of("penalty");
  EXPECT_EQ(penalised.front(), free.front());
  EXPECT_GT(free.back(), 100);
  EXPECT_LT(penalised.back(), free.back() / 10);
}

TEST(Train, LearnsEveryTask) {
  for (const Interrupted& c : interrupted_cases()) {
    const TemporaryFolder folder;
    run::Config config = c.config;
    config.train.steps = 150;
    config.train.lr = 5e-3;
    config.train.ema = 0;
    config.model.dropout = 0;
    config.model.drop_path = 0;
    config.record.evaluate = 150;
    config.train.threads = 1;
    const auto info = train(make_job(config, c.data, folder / "run"));
    const auto records = timeless(folder / "run");
    const auto first = std::find_if(
        records.begin(), records.end(),
        [](const base::Json& record) { return record.at("kind") == "train"; });
    ASSERT_NE(first, records.end()) << c.name;
    EXPECT_LT(info.result->loss, c.left * base::number_of(first->at("loss")))
        << c.name;
  }
}

// A model that can remember 64 images must do so under every activation.
TEST(Train, OverfitsUnderEveryActivation) {
  for (const char* activation :
       {"softmax", "x/sqrt(N)", "x^2/sqrt(N)", "x^3/sqrt(N)", "x^3/4",
        "x^4/sum", "1 + x + x^2/2", "sigmoid", "sigmoid/N", "relu/N",
        "relu^2/N"}) {
    const TemporaryFolder folder;
    run::Config config = image_config();
    // Noise, with labels without any rule: only remembering helps.
    auto splits = std::get<data::ImageSplits>(*image_data());
    Random random(4, Stream::kOrder, 0);
    for (auto& level : splits.train.pixels) {
      level = static_cast<std::uint8_t>(random.below(256));
    }
    for (auto& label : splits.train.labels) {
      label = static_cast<std::int32_t>(random.below(4));
    }
    splits.test = splits.train;
    config.model.activation = activation;
    config.model.dim = 32;
    config.model.mlp = 64;
    config.train.batch = 32;
    config.train.steps = 160;
    config.train.threads = 1;
    config.train.lr = 1e-2;
    config.train.weight_decay = 0;
    config.record.evaluate = 160;
    config.record.checkpoint = 0;
    const auto info = train(make_job(
        config, std::make_shared<const TaskData>(splits), folder / "run"));
    EXPECT_EQ(info.state, run::RunState::kFinished) << activation;
    EXPECT_GE(info.result->accuracy, 0.98) << activation;
  }
}

TEST(Train, ADivergingRunSaysWhereAndKeepsTheLastCheckpoint) {
  const TemporaryFolder folder;
  run::Config config = image_config();
  config.model.activation = "x^8";
  config.model.qk_gain = 40;
  config.model.start = "plain";
  config.train.lr = 3;
  config.train.warmup = 0.5;
  config.train.clip = 0;
  config.train.steps = 200;
  config.record.checkpoint = 1;
  config.record.evaluate = 200;
  const auto info = train(make_job(config, image_data(), folder / "run"));
  ASSERT_EQ(info.state, run::RunState::kDiverged);
  ASSERT_TRUE(info.divergence);
  EXPECT_NE(info.divergence->what.find("layer"), std::string::npos)
      << info.divergence->what;
  const auto records = timeless(folder / "run");
  EXPECT_EQ(records.back().at("kind"), "diverged");
  EXPECT_EQ(records.back().at("step"), info.divergence->step);
  // It is not repeated, and what was good can still be used.
  Job job = make_job(config, image_data(), folder / "run");
  job.resume = true;
  EXPECT_EQ(train(job).state, run::RunState::kDiverged);
  EXPECT_EQ(info.step, info.divergence->step - 1);
}

TEST(Train, WritesTensorBoardFiles) {
  const TemporaryFolder folder;
  run::Config config = image_config();
  config.record.tensorboard = true;
  train(make_job(config, image_data(), folder / "run"));
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder / "run/tensorboard")) {
    ++files;
    EXPECT_GT(entry.file_size(), 1000U);
  }
  EXPECT_EQ(files, 1);
}

TEST(Train, Bf16AutocastLearnsToo) {
  const TemporaryFolder folder;
  run::Config config = image_config();
  config.train.autocast = "bf16";
  config.train.steps = 100;
  config.train.lr = 5e-3;
  const auto info = train(make_job(config, image_data(512), folder / "run"));
  EXPECT_EQ(info.state, run::RunState::kFinished);
  EXPECT_GT(info.result->accuracy, 0.5);
}

TEST(Trial, MeasuresSomethingAndWritesNothing) {
  const auto times = measure_times(image_config(), image_data(), 0);
  EXPECT_GT(times.step, 0);
  EXPECT_GT(times.evaluation, 0);
}

}  // namespace polyattn::train::trainer_test
