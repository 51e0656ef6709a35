// A language model at lengths other than that of its training.
#include "train/lengths.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/program.h"
#include "polyattn/models/gpt.h"
#include "support/message_of.h"
#include "train/evaluate.h"
#include "train/evaluate_run.h"
#include "train/examples.h"
#include "train/small_tasks.h"
#include "train/trainer.h"

namespace polyattn::train::lengths_test {

using polyattn::test::message_of;
using testing::TemporaryFolder;
using testing::text_config;
using testing::text_data;

std::unique_ptr<Network> network_of(const run::Config& config) {
  return make_network(config, shape_of(*text_data(), config.task));
}

// The mean of -log2 p of the bytes of a window that follow `from` to `to`
// bytes of it, over all windows of this length.
double bits_by_hand(Network& network, const std::string& text,
                    std::int64_t length, std::int64_t from, std::int64_t to) {
  const torch::NoGradGuard no_grad;
  double bits = 0;
  std::int64_t count = 0;
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t first = 0; first + 1 < size; first += length) {
    const std::int64_t rows = std::min(length, size - 1 - first);
    std::vector<std::int64_t> bytes(text.begin() + first,
                                    text.begin() + first + rows);
    const auto logits =
        network.module()
            .as<models::GptImpl>()
            ->forward(torch::tensor(bytes, torch::kLong).unsqueeze(0))
            .squeeze(0)
            .log_softmax(-1);
    for (std::int64_t i = from - 1; i < std::min(to, rows); ++i) {
      const auto next = text[static_cast<std::size_t>(first + i + 1)];
      bits -= logits[i][static_cast<unsigned char>(next)].item<double>() /
              std::log(2.0);
      ++count;
    }
  }
  return bits / static_cast<double>(count);
}

TEST(EvaluateLengths, AreTheFiguresOfEachPlace) {
  for (const char* activation : {"softmax", "x^2/sqrt(N)"}) {
    run::Config config = text_config();
    config.model.activation = activation;
    const auto network = network_of(config);
    network->module().eval();
    const auto data = text_data();
    const std::string& text = std::get<data::TextSplits>(*data).test;
    const run::Lengths found =
        evaluate_lengths(*network, data, config, {5, 300});
    EXPECT_EQ(found.context, 24);
    EXPECT_EQ(found.split, "test");
    ASSERT_EQ(found.lengths.size(), 2U);
    for (const run::LengthResult& result : found.lengths) {
      EXPECT_EQ(result.count, 499);
      EXPECT_NEAR(result.evaluation.bits_per_byte.value(),
                  bits_by_hand(*network, text, result.length, 1, result.length),
                  1e-4);
      std::int64_t before = 0;
      std::int64_t count = 0;
      for (const run::LengthPlace& place : result.places) {
        EXPECT_NEAR(
            place.evaluation.bits_per_byte.value(),
            bits_by_hand(*network, text, result.length, before + 1, place.to),
            1e-4)
            << activation << " " << result.length << " " << place.to;
        before = place.to;
        count += place.count;
      }
      EXPECT_EQ(count, 499);
      EXPECT_EQ(before, result.length);
    }
    // 1, 2, 4, and 5 of two halves; 1 to 256, and 300.
    EXPECT_EQ(found.lengths[0].places.size(), 4U);
    EXPECT_EQ(found.lengths[1].places.size(), 10U);
    EXPECT_EQ(found.lengths[0].places[0].count, 100);
  }
}

TEST(EvaluateLengths, AtTheContextAreThoseOfEval) {
  const run::Config config = text_config();
  const auto network = network_of(config);
  const auto data = text_data();
  const auto examples = make_examples(data, config);
  const run::Evaluation usual = evaluate(*network, *examples, true);
  const auto found =
      evaluate_lengths(*network, data, config, {config.task.context});
  EXPECT_NEAR(found.lengths.at(0).evaluation.loss, usual.loss, 1e-5);
  EXPECT_TRUE(network->module().is_training());
}

// Drawn again for each length; at that of the training, the test set itself.
TEST(EvaluateLengths, OfProbesCountAnswersAlone) {
  for (const char* task : {"recall", "copy"}) {
    run::Config config = testing::probe_config(task);
    config.task.validation = task[0] == 'r' ? 0.25 : 0;
    const auto data = load_task_data(config.task);
    const auto network = make_network(config, shape_of(*data, config.task));
    const run::Lengths found =
        evaluate_lengths(*network, data, config, {16, 64});
    EXPECT_EQ(found.context, 16);
    EXPECT_EQ(found.split, "test");
    ASSERT_EQ(found.lengths.size(), 2U);
    // 40 of 16 tokens, but 32 of 64.
    const bool recall = config.task.name == "recall";
    EXPECT_EQ(found.lengths[0].count, 40 * (recall ? 2 : 8));
    EXPECT_EQ(found.lengths[1].count, 32 * (recall ? 2 : 32));
    EXPECT_FALSE(found.lengths[1].evaluation.bits_per_byte);
    config.task.validation = 0;
    const auto examples = make_examples(data, config);
    const run::Evaluation usual = evaluate(*network, *examples, false);
    EXPECT_EQ(found.lengths[0].evaluation.accuracy, usual.accuracy);
    EXPECT_NEAR(found.lengths[0].evaluation.loss, usual.loss, 1e-5);
  }
  const run::Config config = testing::probe_config("recall");
  const auto data = load_task_data(config.task);
  EXPECT_EQ(message_of<std::invalid_argument>(
                [&] { check_lengths(config, *data, {6}); }),
            "[recall] a length of 6 has no room for 2 pairs and as many "
            "questions, which take 8");
}

// Beyond the length of the training, and with a window longer than a text.
TEST(EvaluateLengths, OfProbesWithDecayAndAWindow) {
  run::Config config = testing::probe_config("recall");
  config.model.activation = "x^2/sqrt(N)";
  config.model.decay = "gate";
  config.model.window = 16;
  const auto data = load_task_data(config.task);
  const auto network = make_network(config, shape_of(*data, config.task));
  const run::Lengths found =
      evaluate_lengths(*network, data, config, {8, 16, 64});
  ASSERT_EQ(found.lengths.size(), 3U);
  for (const run::LengthResult& result : found.lengths) {
    EXPECT_TRUE(std::isfinite(result.evaluation.loss)) << result.length;
  }
}

TEST(EvaluateLengths, RefusesWhatHasNone) {
  const auto refusal = [](const run::Config& config, const TaskData& data,
                          std::vector<std::int64_t> lengths) {
    return message_of<std::invalid_argument>(
        [&] { check_lengths(config, data, lengths); });
  };
  run::Config config = text_config();
  EXPECT_EQ(refusal(config, *text_data(), {24, 499}), "");
  EXPECT_EQ(refusal(config, *text_data(), {24, 500}),
            "[lengths] a length of 500 is longer than the text that is held "
            "out, of 500 bytes, allows");
  config.model.positions = "learned";
  EXPECT_EQ(refusal(config, *text_data(), {24}), "");
  EXPECT_EQ(refusal(config, *text_data(), {24, 25}),
            "[lengths] a length of 25 is beyond the context of 24, for which "
            "positions were learned (model.positions)");
  EXPECT_EQ(refusal(testing::image_config(), *testing::image_data(), {24}),
            "[lengths] lengths are of language models, not of the model vit on "
            "fashion-mnist");
}

TEST(EvaluateLengths, AreKeptAtTheEndOfARun) {
  const TemporaryFolder folder;
  test::write_text(folder / "text.txt",
                   std::get<data::TextSplits>(*text_data()).train);
  Job job;
  job.config = text_config();
  job.config.task.name = "text";
  job.config.task.path = (folder / "text.txt").string();
  job.config.record.lengths = "24,96";
  job.config.train.ema = 0.9;
  job.data = load_task_data(job.config.task);
  job.folder = folder / "run";
  const run::RunInfo info = train(job);
  const run::Lengths kept =
      run::parse_lengths(test::read_text(folder / "run/lengths.json"));
  ASSERT_EQ(kept.lengths.size(), 2U);
  EXPECT_EQ(kept.weights, "last");
  EXPECT_NEAR(kept.lengths[0].evaluation.loss, info.result->loss, 1e-5);

  EvaluateOptions options;
  options.folder = folder / "run";
  const RunLengths again = evaluate_run_lengths(options, {24, 96});
  EXPECT_EQ(again.task, "text");
  EXPECT_EQ(again.step, 10);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(again.lengths.lengths[i].evaluation.loss,
                kept.lengths[i].evaluation.loss, 1e-5);
  }
  EXPECT_NE(message_of<base::UsageError>(
                [&] { evaluate_run_lengths(options, {1000000}); }),
            "");

  // Known before anything is trained.
  job.folder = folder / "other";
  job.config.record.lengths = "24,100000";
  EXPECT_NE(message_of<std::invalid_argument>([&] { train(job); }), "");
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
}

}  // namespace polyattn::train::lengths_test
