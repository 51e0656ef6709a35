// Time to quality: curves, the target, the table, and what PyTorch's file may
// not be.
#include "bench/quality.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "bench/quality_pytorch.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace polyattn::bench::quality_test {
namespace {

using test::contains;
using test::message_of;

QualityCurves softmax() {
  return {"softmax",
          {{{100, 0.70}, {200, 0.78}, {300, 0.80}},
           {{100, 0.72}, {200, 0.80}, {300, 0.82}}}};
}

// Diverged after 200 steps with one of its seeds.
QualityCurves square() {
  return {
      "x^2/N",
      {{{100, 0.74}, {200, 0.83}, {300, 0.84}}, {{100, 0.76}, {200, 0.81}}}};
}

QualityCurves never() { return {"x/N", {{{100, 0.5}}, {{100, 0.6}}}}; }

StepTime time_of(const std::string& model, double seconds,
                 const std::string& by = kOurs) {
  return {.model = model,
          .by = by,
          .processor_seconds = exactly(seconds),
          .seconds = exactly(2 * seconds)};
}

Quality quality() {
  return make_quality(
      "imdb", {softmax(), square(), never()},
      {time_of("softmax", 3, "PyTorch 2.6.0"), time_of("softmax", 2),
       time_of("x^2/N", 0.5), time_of("x/N", 0.1)});
}

TEST(Quality, TheMeanIsOfStepsThatAllSeedsReached) {
  const auto mean = mean_curve(square());
  ASSERT_EQ(mean.size(), 2U);
  EXPECT_EQ(mean[1].step, 200);
  EXPECT_DOUBLE_EQ(mean[1].accuracy, 0.82);
}

TEST(Quality, StepsToAnAccuracyAreTheFirst) {
  const auto mean = mean_curve(softmax());
  EXPECT_EQ(steps_to(mean, 0.79), 200);
  EXPECT_EQ(steps_to(mean, 0.1), 100);
  EXPECT_FALSE(steps_to(mean, 0.9));
}

TEST(Quality, TheTargetIsSoftmaxLessHalfAPoint) {
  const Quality q = quality();
  EXPECT_DOUBLE_EQ(q.target, 0.805);
  ASSERT_EQ(q.rows.size(), 4U);
  EXPECT_EQ(q.rows[0].steps, 300);
  EXPECT_EQ(*q.rows[0].processor_seconds(), 900);
  EXPECT_EQ(*q.rows[1].processor_seconds(), 600);
  EXPECT_EQ(*q.rows[2].processor_seconds(), 100);
  EXPECT_EQ(q.rows[2].seed_steps, (std::vector<std::int64_t>{200, 200}));
  EXPECT_EQ(q.rows[0].seed_steps, (std::vector<std::int64_t>{-1, 300}));
  EXPECT_FALSE(q.rows[3].processor_seconds());
}

TEST(Quality, TimesWithoutRunsAndRunsWithoutEvaluationAreRefused) {
  EXPECT_THROW(make_quality("imdb", {softmax()}, {time_of("x^3/N", 1)}),
               std::invalid_argument);
  EXPECT_THROW(make_quality("imdb", {{"softmax", {{}}}}, {}),
               std::invalid_argument);
  EXPECT_THROW(make_quality("imdb", {}, {}), std::invalid_argument);
}

// The goal is of what PyTorch takes; who never gets there misses it.
TEST(Quality, RowsHoldPolynomialsAgainstEverySoftmax) {
  const Report report = quality_report(quality(), 3.0);
  ASSERT_EQ(report.rows.size(), 4U);
  EXPECT_DOUBLE_EQ(report.rows[0].value->median, 9);
  EXPECT_EQ(report.rows[0].reached(), true);
  EXPECT_DOUBLE_EQ(report.rows[1].value->median, 6);
  EXPECT_FALSE(report.rows[1].goal);
  EXPECT_EQ(report.rows[2].value->median, 0);
  EXPECT_EQ(report.rows[2].reached(), false);
  EXPECT_EQ(report.rows[2].note, "x/N never got there");
  EXPECT_FALSE(quality_report(quality(), {}).rows[0].goal);
}

TEST(Quality, TextAndJsonSayWhatWasMeasured) {
  const std::string text = quality_text(quality());
  for (const char* part : {"80.5 %", "PyTorch 2.6.0", "0.500 s", "100.0 s",
                           "never, 300", "200, 200", "never"}) {
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  }
  const auto json = report_json(quality_report(quality(), 3.0));
  EXPECT_EQ(json.at("time_to_quality").at(2).at("processor_seconds"), 100.0);
  EXPECT_TRUE(json.at("time_to_quality").at(3).at("steps").is_null());
  const auto& curve = json.at("quality_curves").at(2);
  EXPECT_EQ(curve.at("processor_seconds"),
            nlohmann::json(std::vector<double>{50, 100}));
  EXPECT_EQ(curve.at("accuracy").size(), 2U);
}

TEST(Quality, CurvesAreTheEvaluationsOfARun) {
  const test::TemporaryFolder folder;
  folder.write("metrics.jsonl",
               "{\"kind\":\"train\",\"step\":1,\"loss\":0.5}\n"
               "{\"kind\":\"eval\",\"step\":2,\"loss\":0.4,\"accuracy\":0.5}\n"
               "{\"kind\":\"eval\",\"step\":4,\"loss\":0.3,\"accuracy\":0.75}"
               "\n");
  const auto curve = read_curve(folder.path());
  ASSERT_EQ(curve.size(), 2U);
  EXPECT_EQ(curve[1].step, 4);
  EXPECT_EQ(curve[1].accuracy, 0.75);
  folder.write("metrics.jsonl", "{\"kind\":\"eval\",\"step\":2,\"loss\":1}\n");
  EXPECT_TRUE(contains(
      message_of<std::runtime_error>([&] { read_curve(folder.path()); }),
      "no evaluation with an accuracy"));
  folder.write("metrics.jsonl", "{\"kind\":\"eval\",\"accuracy\":1}\n");
  EXPECT_THROW(read_curve(folder.path()), std::runtime_error);
}

constexpr const char* kFile =
    "{\"torch\":\"2.6.0\",\"attention\":\"SDPA\",\"threads\":1,"
    "\"steps\":\"abc\",\"losses\":[2.0,1.0],"
    "\"processor_seconds\":[3.0,1.0,2.0],\"seconds\":[4.0]}";

TEST(PyTorchSteps, AreRead) {
  const test::TemporaryFolder folder;
  folder.write("p.json", kFile);
  const PyTorchSteps steps = read_pytorch_steps(folder / "p.json");
  EXPECT_EQ(steps.time.by, "PyTorch 2.6.0, SDPA");
  EXPECT_EQ(steps.time.processor_seconds.median, 2);
  EXPECT_EQ(steps.losses.size(), 2U);
}

TEST(PyTorchSteps, OtherFilesAreRefused) {
  const test::TemporaryFolder folder;
  const auto replaced = [](const std::string& from, const std::string& to) {
    std::string text = kFile;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& text :
       {std::string("{"), std::string("[]"), replaced("\"torch\"", "\"t\""),
        replaced("[3.0,1.0,2.0]", "[]"), replaced("[3.0,1.0,2.0]", "[0]"),
        replaced("[3.0,1.0,2.0]", "[\"nan\"]"),
        replaced("[4.0]", "\"four\"")}) {
    folder.write("p.json", text);
    EXPECT_TRUE(contains(message_of<std::runtime_error>(
                             [&] { read_pytorch_steps(folder / "p.json"); }),
                         "examples/pytorch_steps.py"))
        << text;
  }
}

TEST(PyTorchSteps, OfAnotherModelAreRefused) {
  const test::TemporaryFolder folder;
  folder.write("p.json", kFile);
  const PyTorchSteps steps = read_pytorch_steps(folder / "p.json");
  check_steps("p.json", steps, "abc");
  EXPECT_TRUE(contains(message_of<std::runtime_error>(
                           [&] { check_steps("p.json", steps, "abd"); }),
                       "of other steps (abc, not abd)"));
  check_losses("p.json", steps, {2.0001, 1.0001, 5});
  EXPECT_TRUE(contains(message_of<std::runtime_error>([&] {
                         check_losses("p.json", steps, {2, 1.01});
                       }),
                       "the loss of step 2 is 1, ours 1.01"));
}

}  // namespace
}  // namespace polyattn::bench::quality_test
