// `polyattn plan`: from options to a question, and what is answered.
#include "cli/plan.h"

#include <gtest/gtest.h>

#include "base/program.h"

namespace polyattn::cli::plan_test {
namespace {

// Fixed costs, so that no file is read or written and the answers are known.
class Plan : public testing::Test {
 protected:
  Plan() {
    const PathCost cost{.row = 1,
                        .pair = 1,
                        .pair_width = 0.05,
                        .head = 1000,
                        .token = 1,
                        .feature = 0.2,
                        .feature_width = 0.05};
    set_path_costs(PathCosts{cost, cost});
  }

  static PlanOptions square() {
    PlanOptions options;
    options.n = 16384;
    options.degree = 2;
    return options;
  }
};

TEST_F(Plan, DegreeIsShortForAFormula) {
  PlanOptions options = square();
  EXPECT_EQ(plan_question(options).shape.activation,
            Activation::parse("x^2/sqrt(N)"));
  options.degree = 1;
  EXPECT_EQ(plan_question(options).shape.activation,
            Activation::parse("x/sqrt(N)"));
}

TEST_F(Plan, FillsInWhatIsNotSaid) {
  PlanOptions options = square();
  options.d = 32;
  options.heads = 6;
  const PlanQuestion whole = plan_question(options);
  EXPECT_EQ(whole.shape.m, 16384);
  EXPECT_EQ(whole.shape.e, 32);
  EXPECT_EQ(whole.shape.g, 6);
  EXPECT_TRUE(whole.keys_follow);
  EXPECT_EQ(whole.directions.size(), 2U);
  options.m = 100;
  options.backward = true;
  const PlanQuestion part = plan_question(options);
  EXPECT_FALSE(part.keys_follow);
  EXPECT_EQ(part.directions, std::vector{Direction::kBackward});
}

TEST_F(Plan, RefusesNonsense) {
  const auto ask = [](auto&& change) {
    PlanOptions options = square();
    change(options);
    return plan_question(options);
  };
  EXPECT_THROW(ask([](auto& o) { o.activation = "x"; }), base::UsageError);
  EXPECT_THROW(ask([](auto& o) { o.degree.reset(); }), base::UsageError);
  EXPECT_THROW(ask([](auto& o) { o.heads = 4, o.kv_heads = 3; }),
               base::UsageError);
  EXPECT_THROW(ask([](auto& o) { o.causal = "middle"; }), base::UsageError);
  EXPECT_THROW(ask([](auto& o) { o.degree.reset(), o.activation = "x^"; }),
               FormulaError);
}

TEST_F(Plan, CrossoverIsWhereThePredictionsCross) {
  PlanQuestion question = plan_question(square());
  for (const Causal causal : {Causal::kNone, Causal::kFirst}) {
    for (const std::int64_t width : {8, 64}) {
      question.shape.causal = causal;
      question.shape.d = question.shape.e = width;
      const auto n = crossover_of(question, Direction::kForward);
      ASSERT_TRUE(n.has_value());
      const auto linear_is_faster = [&](std::int64_t length) {
        question.shape.n = question.shape.m = length;
        const PathEstimate e = answer_plan(question).front().estimate;
        return e.linear_seconds < e.dense_seconds;
      };
      EXPECT_GT(*n, 1);
      EXPECT_TRUE(linear_is_faster(*n)) << *n;
      EXPECT_FALSE(linear_is_faster(*n - 1)) << *n;
    }
  }
}

TEST_F(Plan, NoLengthIsEnoughForFewKeys) {
  PlanOptions options = square();
  options.m = 8;
  const auto answers = answer_plan(plan_question(options));
  EXPECT_EQ(answers[0].crossover, std::nullopt);
  EXPECT_EQ(answers[0].estimate.path, Path::kDense);
  EXPECT_NE(plan_text(plan_question(options), answers).find("no N up to"),
            std::string::npos);
}

TEST_F(Plan, TextExplains) {
  const PlanQuestion question = plan_question(square());
  const std::string text = plan_text(question, answer_plan(question));
  for (const char* part :
       {"x^2/sqrt(N), N = 16384, M = 16384, D = 64", "2080", "532.5 kB",
        "forward is linear: linear is expected to be faster", "backward is ",
        "N = ", "bench calibrate", "POLYATTN_PLAN"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(Plan, SaysWhyThereIsNoLinearPath) {
  PlanOptions options = square();
  options.degree.reset();
  options.activation = "softmax";
  const PlanQuestion question = plan_question(options);
  const auto answers = answer_plan(question);
  EXPECT_FALSE(answers[0].estimate.obstacle.empty());
  const std::string text = plan_text(question, answers);
  EXPECT_NE(text.find("forward is dense: there is no linear path"),
            std::string::npos)
      << text;
  const auto json = plan_json(question, answers);
  EXPECT_TRUE(json["directions"][0]["linear_ms"].is_null());
  EXPECT_TRUE(json["directions"][0]["obstacle"].is_string());
}

TEST_F(Plan, AWindowIsDenseAndCostsWhatItShows) {
  PlanOptions options = square();
  options.causal = "last";
  const auto dense_ms = [&] {
    const PlanQuestion question = plan_question(options);
    return plan_json(question,
                     answer_plan(question))["directions"][0]["dense_ms"]
        .get<double>();
  };
  const double whole = dense_ms();
  options.window = {63};
  EXPECT_EQ(plan_question(options).shape.window, (Window{63, 63}));
  const double of_64 = dense_ms();
  options.n *= 2;
  EXPECT_NEAR(dense_ms() / of_64, 2, 0.01);
  EXPECT_LT(of_64, whole / 20);
  const PlanQuestion question = plan_question(options);
  const std::string text = plan_text(question, answer_plan(question));
  for (const char* part : {", causal from the last, window of 63 keys before\n",
                           "forward is dense: there is no linear path: a "
                           "window shows each row other keys"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  options.causal = "none";
  options.window = {10, -1};
  const PlanQuestion open = plan_question(options);
  EXPECT_NE(plan_text(open, answer_plan(open))
                .find("window of 10 keys before and all behind"),
            std::string::npos);
  EXPECT_EQ(plan_json(open, {})["window"].dump(), "[10,-1]");
  options.window = {-2};
  EXPECT_THROW(answer_plan(plan_question(options)), base::UsageError);
}

TEST_F(Plan, JsonHasTheFieldsThatToolsRead) {
  const PlanQuestion question = plan_question(square());
  const auto json = plan_json(question, answer_plan(question));
  for (const char* name :
       {"activation", "B", "H", "G", "N", "M", "D", "E", "causal", "window",
        "dtype", "target", "costs_file", "polyattn_plan", "directions"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
  ASSERT_EQ(json["directions"].size(), 2U);
  const auto& forward = json["directions"][0];
  EXPECT_EQ(forward["direction"], "forward");
  EXPECT_EQ(forward["path"], "linear");
  EXPECT_EQ(forward["features"], 2080);
  EXPECT_EQ(forward["state_bytes"], 2080 * 64 * 4);
  EXPECT_LT(forward["linear_ms"].get<double>(),
            forward["dense_ms"].get<double>());
  EXPECT_LT(forward["crossover_N"].get<int>(), 16384);
}

}  // namespace
}  // namespace polyattn::cli::plan_test
