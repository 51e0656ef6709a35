// Texts in pieces: windows, bits per byte, and the tokenizer in a run's folder.
#include "train/text_tokens.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "support/message_of.h"
#include "support/records.h"
#include "train/evaluate.h"
#include "train/evaluate_run.h"
#include "train/examples.h"
#include "train/generate.h"
#include "train/lengths.h"
#include "train/small_tasks.h"
#include "train/trainer.h"

namespace polyattn::train::text_tokens_test {

using polyattn::test::message_of;
using testing::TemporaryFolder;

constexpr std::int64_t kPieces = 320;

std::string sample() {
  std::string text;
  for (int i = 0; i < 160; ++i)
    text += "the quick brown fox jumps over " + std::to_string(i * 37) +
            " lazy dogs, and the dogs sleep on.\n";
  return text;
}

run::Config config_with(const std::string& tokenizer) {
  run::Config config = testing::text_config();
  config.task.tokenizer = tokenizer;
  config.model.positions = "rotary";
  return config;
}

std::shared_ptr<const TaskData> data_of(const run::TaskConfig& task,
                                        const std::string& model = {}) {
  data::TextSplits text{.train = sample(), .test = sample().substr(0, 1000)};
  make_tokens(text, task, model);
  return std::make_shared<const TaskData>(std::move(text));
}

const data::TextSplits& text_in(const TaskData& data) {
  return std::get<data::TextSplits>(data);
}

std::string bytes_of(const data::TextTokens& tokens,
                     const std::vector<std::int32_t>& part) {
  std::string bytes;
  for (const std::int32_t token : part)
    bytes += tokens.pieces.at(static_cast<std::size_t>(token));
  return bytes;
}

TEST(TextTokens, StandForTheTextWithinItsLimits) {
  run::TaskConfig task = config_with("bpe:320").task;
  task.train_limit = 3000;
  task.test_limit = 100;
  const auto data = data_of(task);
  const data::TextSplits& text = text_in(*data);
  ASSERT_TRUE(text.tokens);
  EXPECT_EQ(bytes_of(*text.tokens, text.tokens->train), text.train);
  EXPECT_EQ(text.train.size(), 3000U);
  EXPECT_EQ(bytes_of(*text.tokens, text.tokens->test), text.test);
  EXPECT_EQ(text.test.size(), 100U);
  const TaskShape shape = shape_of(*data, task);
  EXPECT_EQ(shape.vocabulary, kPieces);
  EXPECT_EQ(shape.classes, kPieces);
  EXPECT_TRUE(shape.text);

  EXPECT_FALSE(text_in(*data_of(testing::text_config().task)).tokens);
}

TEST(TextTokens, ALimitCutsNoCharacter) {
  run::TaskConfig task = config_with("bpe:320").task;
  task.test_limit = 9;
  data::TextSplits text{.train = sample(), .test = "12345678\xe2\x82\xac"};
  make_tokens(text, task, "");
  EXPECT_EQ(text.test, "12345678");
}

// Every token but the first is predicted once, and bits are by its bytes.
TEST(TextTokens, BitsAreByTheByte) {
  run::Config config = config_with("unigram:320");
  const auto data = data_of(config.task);
  const data::TextTokens& tokens = *text_in(*data).tokens;
  const auto examples = make_examples(data, config);
  std::vector<std::int32_t> predicted;
  for (std::int64_t i = 0; i < examples->test_batches(); ++i) {
    const Batch batch = examples->test_batch(i);
    for (std::int64_t j = 0; j < batch.targets.numel(); ++j) {
      const auto target = batch.targets[j].item<std::int64_t>();
      if (target >= 0) predicted.push_back(static_cast<std::int32_t>(target));
    }
  }
  EXPECT_EQ(predicted, std::vector(tokens.test.begin() + 1, tokens.test.end()));
  EXPECT_EQ(examples->test_count(), std::ssize(predicted));
  const auto bytes = std::ssize(bytes_of(tokens, predicted));
  EXPECT_EQ(examples->test_bytes(), bytes);
  EXPECT_GT(bytes, examples->test_count());

  const auto network = make_network(config, shape_of(*data, config.task));
  const run::Evaluation found = evaluate(*network, *examples, true);
  ASSERT_TRUE(found.bits_per_byte);
  const double bits = found.loss * static_cast<double>(predicted.size()) /
                      std::log(2.0) / static_cast<double>(bytes);
  EXPECT_NEAR(*found.bits_per_byte, bits, 1e-9 * bits);

  const auto lengths =
      evaluate_lengths(*network, data, config, {8, config.task.context});
  const run::LengthResult& own = lengths.lengths.back();
  EXPECT_EQ(own.count, std::ssize(predicted));
  EXPECT_NEAR(*own.evaluation.bits_per_byte, bits, 1e-4 * bits);
}

class TextTokensRun : public ::testing::Test {
 protected:
  TextTokensRun() {
    config_ = config_with("bpe:320");
    config_.task.name = "text";
    config_.train.threads = 1;
    config_.train.steps = 6;
    config_.task.path = folder_.write("text.txt", sample()).string();
  }

  run::RunInfo train_on(const std::shared_ptr<const TaskData>& data,
                        std::int64_t stop_at, bool resume) {
    Job job;
    job.config = config_;
    job.data = data;
    job.folder = run();
    job.resume = resume;
    std::int64_t step = 0;
    job.progress = [&](const Progress& p) { step = p.info.step; };
    job.stop = [&] { return stop_at > 0 && step >= stop_at; };
    return train(job);
  }

  RunEvaluation evaluate() const {
    EvaluateOptions options;
    options.folder = run();
    return evaluate_run(options);
  }

  GenerateResult write(GenerateOptions options,
                       std::string* shown = nullptr) const {
    options.folder = run();
    return generate(options, [&](std::string_view piece) {
      if (shown != nullptr) *shown += piece;
      return true;
    });
  }

  std::filesystem::path run() const { return folder_ / "run"; }
  std::filesystem::path file() const { return run() / "tokenizer.model"; }

  TemporaryFolder folder_;
  run::Config config_;
};

TEST_F(TextTokensRun, KeepsItsTokenizer) {
  const auto data = load_task_data(config_.task);
  const std::string& model = text_in(*data).tokens->model;
  train_on(data, 4, false);
  EXPECT_EQ(test::read_text(file()), model);
  EXPECT_EQ(tokenizer_of(run(), config_.task), model);
  EXPECT_EQ(run::read_run_info(run()).tokenizer->size(), 64U);

  // It goes on with its own, and heals a file that is damaged.
  test::write_text(file(), "x");
  const run::RunInfo info =
      train_on(load_task_data(config_.task, model), 0, true);
  EXPECT_EQ(info.state, run::RunState::kFinished);
  EXPECT_EQ(test::read_text(file()), model);
  const RunEvaluation found = evaluate();
  EXPECT_NEAR(*found.evaluation.bits_per_byte, *info.result->bits_per_byte,
              1e-5);
}

TEST_F(TextTokensRun, RefusesAnotherTokenizer) {
  train_on(load_task_data(config_.task), 2, false);
  run::TaskConfig other = config_.task;
  other.tokenizer = "unigram:320";
  const std::string message = message_of<run::RecordError>(
      [&] { train_on(load_task_data(other), 0, true); });
  EXPECT_TRUE(message.starts_with("[train] " + run().string() +
                                  " began with another tokenizer (sha256 "))
      << message;
}

TEST_F(TextTokensRun, RefusesAFileThatIsDamaged) {
  train_on(load_task_data(config_.task), 2, false);
  test::write_text(file(), test::read_text(file()) + "x");
  const std::string start =
      file().string() +
      " is not the tokenizer that the run was trained with: its sha256 is ";
  for (const auto& use : std::vector<std::function<void()>>{
           [&] { evaluate(); }, [&] { write({}); }}) {
    const std::string message = message_of<data::DataError>(use);
    EXPECT_TRUE(message.starts_with(start)) << message;
  }
  std::filesystem::remove(file());
  EXPECT_THROW(evaluate(), data::DataError);
}

TEST_F(TextTokensRun, WritesInPieces) {
  train_on(load_task_data(config_.task), 0, false);
  std::string shown;
  GenerateOptions options;
  options.prompt = "the quick";
  options.bytes = 100;
  const GenerateResult found = write(options, &shown);
  EXPECT_EQ(found.text, shown);
  EXPECT_GE(found.text.size(), 100U);
  EXPECT_GT(found.tokens, 0);
  EXPECT_LE(found.tokens, std::ssize(found.text));
}

TEST(TextTokens, FilesThatAreNoModelAreRefused) {
  const TemporaryFolder folder;
  run::TaskConfig task = config_with("x").task;
  task.tokenizer = folder.write("a.model", "nothing").string();
  EXPECT_TRUE(
      message_of<data::DataError>([&] {
        data_of(task);
      }).starts_with("cannot use " + task.tokenizer + " as a tokenizer: "));
  task.tokenizer = (folder / "b.model").string();
  EXPECT_TRUE(message_of<data::DataError>([&] {
                data_of(task);
              }).starts_with("cannot read " + task.tokenizer));
}

}  // namespace polyattn::train::text_tokens_test
