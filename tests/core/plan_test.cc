// Which path a call takes: by costs that are installed, by what is asked for,
// and by nothing else, whatever stands in a file.
#include "polyattn/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_cases.h"
#include "core/random_inputs.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace polyattn::test {
namespace {

// An environment variable for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { set(old_ ? old_->c_str() : nullptr); }

  void set(const char* value) const {
    value == nullptr ? ::unsetenv(name_) : ::setenv(name_, value, 1);
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// Nanoseconds for each multiplication, and nothing else.
PathCosts simple_costs(double pair, double feature) {
  PathCost cost;
  cost.pair_width = pair, cost.feature_width = feature;
  return {cost, cost};
}

// x^2 with D = E = 16 has 136 features: the paths multiply as often where
// N = 136.
Case square(std::int64_t n) {
  return {.n = n,
          .m = n,
          .d = 16,
          .e = 16,
          .formula = "x^2/sqrt(N)",
          .path = Path::kAuto};
}

PathEstimate estimate(const Case& c, Direction direction) {
  const Instance instance(c);
  return estimate_paths(instance.inputs(), instance.config(), direction);
}

PathEstimate estimate(const Case& c) {
  return estimate(c, Direction::kForward);
}

// Costs by hand, no wish in the environment, and nothing in anybody's home.
class Plan : public ::testing::Test {
 protected:
  Plan() {
    cache.set(folder.path().c_str());
    set_path_costs(simple_costs(1, 1));
  }
  ~Plan() override { set_path_costs(std::nullopt); }

  TemporaryFolder folder;
  Variable wish{"POLYATTN_PLAN", nullptr};
  Variable cache{"POLYATTN_CACHE", nullptr};
};

TEST_F(Plan, TheChoiceFlipsWherePredictionsCross) {
  // Features that cost four times as much make it N = 544.
  for (const double feature : {0.5, 1.0, 4.0}) {
    const auto crossing = static_cast<std::int64_t>(136 * feature);
    set_path_costs(simple_costs(1, feature));
    for (const Direction direction :
         {Direction::kForward, Direction::kBackward}) {
      for (std::int64_t n = 48; n <= 720; n += 48) {
        SCOPED_TRACE(n);
        const PathEstimate e = estimate(square(n), direction);
        const bool linear = n > crossing;
        EXPECT_EQ(e.path, linear ? Path::kLinear : Path::kDense);
        EXPECT_EQ(e.linear_seconds < e.dense_seconds, linear);
        EXPECT_TRUE(contains(e.reason, linear ? "linear is" : "dense is"))
            << e.reason;
      }
    }
  }
}

TEST_F(Plan, PredictionsFollowFromTheCosts) {
  const auto n = 480.0;
  set_path_costs(simple_costs(3, 5));
  const PathEstimate e = estimate(square(480));
  EXPECT_DOUBLE_EQ(e.dense_seconds, 1e-9 * n * n * 32 * 3);
  EXPECT_DOUBLE_EQ(e.linear_seconds, 1e-9 * 2 * n * 136 * 16 * 5);
  EXPECT_EQ(e.features, 136);
  EXPECT_EQ(e.state_bytes, 136 * 16 * 4);
  EXPECT_TRUE(e.obstacle.empty());
  EXPECT_EQ(estimate(square(480), Direction::kBackward).state_bytes,
            2 * 136 * 16 * 4);
  PathCost cost;
  cost.row = 1, cost.pair = 2, cost.head = 3, cost.token = 4, cost.feature = 5;
  set_path_costs(PathCosts{cost, {}});
  const PathEstimate other = estimate(square(480));
  EXPECT_DOUBLE_EQ(other.dense_seconds, 1e-9 * (2 * n * 32 + n * n * 2));
  EXPECT_DOUBLE_EQ(other.linear_seconds,
                   1e-9 * (3 + 2 * n * 32 * 4 + 2 * n * 136 * 5));
  EXPECT_EQ(estimate(square(480), Direction::kBackward).dense_seconds, 0);
}

TEST_F(Plan, PredictionsGrowWithTheLength) {
  const PathCost all{1, 1, 1, 1, 1, 1, 1};
  set_path_costs(PathCosts{all, all});
  for (const Causal causal : {Causal::kNone, Causal::kFirst, Causal::kLast}) {
    for (const Direction direction :
         {Direction::kForward, Direction::kBackward}) {
      double dense = 0, linear = 0;
      for (const std::int64_t n : {1, 2, 47, 48, 49, 300, 1000, 5000}) {
        Case c = square(n);
        c.causal = causal;
        const PathEstimate e = estimate(c, direction);
        EXPECT_GT(e.dense_seconds, dense);
        EXPECT_GE(e.linear_seconds, linear);
        dense = e.dense_seconds, linear = e.linear_seconds;
      }
      EXPECT_LT(linear, dense);  // of 5000 tokens
    }
  }
}

// Half the pairs are left, and the sum over sequences counts.
TEST_F(Plan, CausalAndRaggedCallsAreCounted) {
  Case c = square(480);
  c.causal = Causal::kFirst;
  EXPECT_DOUBLE_EQ(estimate(c).dense_seconds, 1e-9 * 480 * 481 / 2 * 32);
  c.causal = Causal::kLast, c.m = 500;
  EXPECT_DOUBLE_EQ(estimate(c).dense_seconds,
                   1e-9 * (480 * 481 / 2 + 480 * 20) * 32);
  Case ragged = square(0);
  ragged.q_lengths = {100, 0, 10}, ragged.k_lengths = {200, 7, 10};
  EXPECT_DOUBLE_EQ(estimate(ragged).dense_seconds,
                   1e-9 * (100 * 200 + 10 * 10) * 32);
}

// Costs that are absurd do not get the last word.
TEST_F(Plan, CountsDecideWhereTheyAreFarApart) {
  set_path_costs(simple_costs(1, 1000));
  const PathEstimate far = estimate(square(48 * 48));
  EXPECT_EQ(far.path, Path::kLinear);
  EXPECT_TRUE(contains(far.reason, "counts")) << far.reason;
  set_path_costs(simple_costs(1000, 1));
  const PathEstimate near = estimate(square(8));
  EXPECT_EQ(near.path, Path::kDense);
  EXPECT_TRUE(contains(near.reason, "counts")) << near.reason;
}

TEST_F(Plan, EmptyCallsHaveAReasonToo) {
  for (const std::int64_t n : {0, 1}) {
    const PathEstimate e = estimate(square(n));
    EXPECT_EQ(e.path, Path::kDense);
    EXPECT_GT(e.reason.size(), 20U);
    EXPECT_TRUE(std::isdigit(e.reason.back()) != 0 ||
                !contains(e.reason, "factor"))
        << e.reason;
  }
}

TEST_F(Plan, APathThatIsAskedForIsTaken) {
  for (const std::int64_t n : {10, 480}) {
    for (const Path path : {Path::kDense, Path::kLinear}) {
      for (const char* text : {"dense", "linear", "auto"}) {
        wish.set(text);
        Case c = square(n);
        c.path = path;
        const PathEstimate e = estimate(c);
        EXPECT_EQ(e.path, path);
        EXPECT_TRUE(contains(e.reason, "asked for")) << e.reason;
        EXPECT_GT(e.linear_seconds, 0);
      }
    }
  }
}

TEST_F(Plan, TheEnvironmentOverridesTheChoice) {
  for (const std::int64_t n : {10, 480}) {
    wish.set("dense");
    EXPECT_EQ(estimate(square(n)).path, Path::kDense);
    EXPECT_TRUE(contains(estimate(square(n)).reason, "POLYATTN_PLAN"));
    wish.set("linear");
    EXPECT_EQ(estimate(square(n)).path, Path::kLinear);
    EXPECT_TRUE(contains(estimate(square(n)).reason, "POLYATTN_PLAN"));
    for (const char* none : {"auto", ""}) {
      wish.set(none);
      const PathEstimate e = estimate(square(n));
      EXPECT_EQ(e.path, n == 10 ? Path::kDense : Path::kLinear);
      EXPECT_TRUE(contains(e.reason, "expected")) << e.reason;
    }
  }
  wish.set("linear");
  Case softmax = square(480);
  softmax.formula = "softmax";
  EXPECT_EQ(estimate(softmax).path, Path::kDense);
}

TEST_F(Plan, AWishThatIsNoneIsRefused) {
  for (const char* text : {"Dense", "lineal", "1", " auto"}) {
    wish.set(text);
    const Instance instance(square(100));
    Outputs out = instance.outputs(DType::kF32);
    EXPECT_THROW(estimate(square(100)), std::invalid_argument);
    const std::string message = message_of<std::invalid_argument>([&] {
      attention_forward(instance.inputs(), instance.config(),
                        {out.o.tensor, {}, {}});
    });
    EXPECT_TRUE(contains(message, text)) << message;
    EXPECT_TRUE(contains(message, "dense, linear or auto"));
    EXPECT_TRUE(std::isnan(at(out.o.tensor, {0, 0, 0, 0})));
    Case forced = square(100);
    forced.path = Path::kLinear;  // no choice, so no wish
    EXPECT_EQ(estimate(forced).path, Path::kLinear);
  }
}

TEST_F(Plan, ObstaclesMakeItDenseAndAreNamed) {
  Case softmax = square(480), odd = softmax, bias = softmax, mask = softmax;
  softmax.formula = "softmax";
  odd.formula = "x^3/sum";
  bias.bias = Extra::kFull;
  mask.mask = Extra::kFull;
  Case heads = square(480);
  heads.heads = 2, heads.mask = Extra::kPadding;
  for (auto& [c, why] :
       {std::pair<Case, const char*>{softmax, "not a polynomial"},
        {odd, "both signs"},
        {bias, "bias"},
        {mask, "row to row"}}) {
    const PathEstimate e = estimate(c);
    EXPECT_EQ(e.path, Path::kDense);
    EXPECT_TRUE(contains(e.obstacle, why)) << e.obstacle;
    EXPECT_TRUE(contains(e.reason, e.obstacle)) << e.reason;
    EXPECT_EQ(e.linear_seconds, 0);
    EXPECT_EQ(e.features, 0);
    EXPECT_GT(e.dense_seconds, 0);
    Case forced = c;
    forced.path = Path::kLinear;
    EXPECT_THROW(estimate(forced), std::invalid_argument);
  }
  EXPECT_TRUE(estimate(heads).obstacle.empty());
}

TEST_F(Plan, NullDataWillDo) {
  const Instance instance(square(480));
  AttentionInputs in = instance.inputs();
  in.q.data = in.k.data = in.v.data = nullptr;
  const PathEstimate e =
      estimate_paths(in, instance.config(), Direction::kForward);
  EXPECT_EQ(e.path, Path::kLinear);
  EXPECT_DOUBLE_EQ(e.linear_seconds, estimate(square(480)).linear_seconds);
}

// States that no machine wants: D = 128 and x^4 have 12 million features.
TEST_F(Plan, AHugeStateIsLeftAlone) {
  set_path_costs(simple_costs(1e9, 1e-9));
  Case c = square(0);
  c.d = c.e = 128, c.formula = "x^4/N";
  const Instance instance(c);
  AttentionInputs in = instance.inputs();
  const Extents size = {1, 1, std::int64_t{1} << 26, 128};
  in.q = in.k = in.v = {nullptr, DType::kF32, size, contiguous_strides(size)};
  const PathEstimate e =
      estimate_paths(in, instance.config(), Direction::kForward);
  EXPECT_EQ(e.path, Path::kDense);
  EXPECT_TRUE(contains(e.reason, "1 GB")) << e.reason;
  EXPECT_GT(e.state_bytes, std::int64_t{1} << 30);
}

// What a call does is what was said: its workspace and its bits are those of
// the path.
TEST_F(Plan, CallsDoWhatTheEstimateSays) {
  for (const std::int64_t n : {96, 192}) {
    const Path said = estimate(square(n)).path;
    Outputs out[3];
    std::size_t forward[3], backward[3];
    for (const Path path : {Path::kAuto, Path::kDense, Path::kLinear}) {
      Case c = square(n);
      c.path = path;
      const Instance instance(c);
      const auto i = static_cast<std::size_t>(path);
      forward[i] =
          attention_forward_workspace(instance.inputs(), instance.config(), 1);
      backward[i] =
          attention_backward_workspace(instance.inputs(), instance.config(), 1);
      out[i] = instance.outputs(c.dtype);
      SerialParallel serial;
      run_forward(instance, {out[i].o.tensor, out[i].rows, {}}, serial);
      run_backward(instance, out[i], out[i].gradients(), serial);
    }
    const bool linear = n == 192;
    EXPECT_EQ(said, linear ? Path::kLinear : Path::kDense);
    // On the linear path there is room to fall back on the other.
    EXPECT_EQ(forward[0],
              linear ? std::max(forward[1], forward[2]) : forward[1]);
    EXPECT_EQ(backward[0],
              linear ? std::max(backward[1], backward[2]) : backward[1]);
    EXPECT_EQ(out[0].o.bytes, out[linear ? 2 : 1].o.bytes);
    EXPECT_EQ(out[0].dk.bytes, out[linear ? 2 : 1].dk.bytes);
    EXPECT_NE(out[0].o.bytes, out[linear ? 1 : 2].o.bytes);
    EXPECT_NE(out[0].dk.bytes, out[linear ? 1 : 2].dk.bytes);
  }
}

// What was done is returned: forward and backward, whatever made the choice.
TEST_F(Plan, CallsReturnThePathTheyTook) {
  for (const std::int64_t n : {96, 192}) {
    const Instance instance(square(n));
    Outputs out = instance.outputs(DType::kF32);
    const AttentionResults results{out.o.tensor, out.rows, {}};
    const Path expected = n == 192 ? Path::kLinear : Path::kDense;
    EXPECT_EQ(attention_forward(instance.inputs(), instance.config(), results),
              expected);
    EXPECT_EQ(attention_backward(instance.inputs(), instance.config(),
                                 out.backward_inputs(instance.d_o.tensor),
                                 out.gradients()),
              expected);
    EXPECT_EQ(attention_forward(instance.inputs(), instance.config(),
                                {out.o.tensor, {}, out.stats}),
              Path::kDense);
  }
}

void expect_usable(const PathCosts& costs) {
  EXPECT_NO_THROW(set_path_costs(costs));
  for (const PathCost& c : {costs.forward, costs.backward}) {
    EXPECT_GT(c.pair_width, 0);
    EXPECT_GT(c.feature_width, 0);
  }
}

TEST_F(Plan, EveryTargetHasCosts) {
  for_each_target(supported_targets(), [&](const std::string&) {
    set_path_costs(std::nullopt);
    const PathCosts costs = path_costs();
    expect_usable(costs);
    set_path_costs(std::nullopt);
    EXPECT_EQ(path_costs(), costs);
  });
}

TEST_F(Plan, MeasuredCostsCanBeUsed) {
  for_each_target(supported_targets(), [&](const std::string&) {
    // On a busy machine the fit may give a term no share at all.
    EXPECT_NO_THROW(set_path_costs(measure_path_costs()));
    set_path_costs(std::nullopt);
  });
  EXPECT_EQ(folder.file_count(), 0);
}

// Numbers that nobody has by chance, and that need all their digits.
PathCosts odd_costs() {
  const PathCost f{0.1, 1.0 / 3, 2e-17, 12345.678901234567, 0, 1e300, 7};
  return {f, {7, 6, 5, 4, 3, 2, 0.7}};
}

TEST_F(Plan, CostsAreOfATarget) {
  const auto targets = supported_targets();
  if (targets.size() < 2) GTEST_SKIP() << "one target only";
  set_path_costs(odd_costs());
  force_target(target_name() == targets[0] ? targets[1] : targets[0]);
  EXPECT_NE(path_costs(), odd_costs());
  force_target("");
  EXPECT_EQ(path_costs(), odd_costs());
}

TEST_F(Plan, CostsThatAreNoneAreRefused) {
  for (const double bad : {-1.0, kNaN, kInf}) {
    PathCosts costs = odd_costs();
    costs.backward.step = bad;
    EXPECT_THROW(set_path_costs(costs), std::invalid_argument);
  }
  EXPECT_EQ(path_costs(), simple_costs(1, 1));
}

TEST_F(Plan, TheTextOfCostsHasAllTheirDigits) {
  EXPECT_EQ(to_string(simple_costs(0.5, 3)),
            "forward 0 0 0.5 0 0 0 3 0 backward 0 0 0.5 0 0 0 3 0");
  for (const PathCosts& costs : {odd_costs(), simple_costs(1, 2), PathCosts()})
    EXPECT_EQ(parse_path_costs(to_string(costs)), costs);
}

std::string replaced(std::string text, const std::string& from,
                     const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

using Spoil = std::string (*)(std::string);
constexpr Spoil kSpoilt[] = {
    [](std::string) { return std::string(); },
    [](std::string) { return std::string(5000, '\0'); },
    [](std::string s) { return s.substr(0, s.size() / 2); },
    [](std::string s) { return s.substr(0, s.find("backward")); },
    [](std::string s) { return s.substr(0, s.rfind(' ')); },
    [](std::string s) { return s + " 1"; },
    [](std::string s) { return s + "x"; },
    [](std::string s) { return replaced(s, "forward", "forwards"); },
    [](std::string s) { return replaced(s, " 12345.", " -12345."); },
    [](std::string s) { return replaced(s, " 12345.", " x12345."); },
    [](std::string s) { return replaced(s, " 12345.", "  12345."); },
    [](std::string s) { return replaced(s, "e+300", "e+999"); },
    [](std::string s) { return replaced(s, " 7 ", " nan "); },
    [](std::string s) { return replaced(s, " 7 ", " inf "); }};

TEST_F(Plan, TextsThatAreNoCostsAreRefused) {
  for (const Spoil spoil : kSpoilt) {
    const std::string text = spoil(to_string(odd_costs()));
    EXPECT_THROW(parse_path_costs(text), std::invalid_argument) << text;
  }
}

TEST_F(Plan, TheFileKeepsCostsToTheLastDigit) {
  EXPECT_EQ(path_costs_file(),
            (folder / ("plan-" + target_name() + ".txt")).string());
  EXPECT_EQ(read_path_costs_file(), std::nullopt);
  for (const PathCosts& costs : {odd_costs(), simple_costs(1, 2)}) {
    EXPECT_TRUE(write_path_costs_file(costs));
    EXPECT_EQ(read_path_costs_file(), costs);
    EXPECT_EQ(folder.file_count(), 1);  // nothing is left behind
  }
  EXPECT_EQ(path_costs(), simple_costs(1, 1));  // nobody asked for others
}

TEST_F(Plan, FoldersAreMadeOrTheAnswerIsNo) {
  cache.set((folder / "a/b").c_str());
  EXPECT_TRUE(write_path_costs_file(odd_costs()));
  EXPECT_EQ((folder / "a/b").string() + "/plan-" + target_name() + ".txt",
            path_costs_file());
  folder.write("file", "");
  cache.set((folder / "file/below").c_str());
  EXPECT_FALSE(write_path_costs_file(odd_costs()));
  EXPECT_EQ(read_path_costs_file(), std::nullopt);
}

TEST_F(Plan, TheFileHasAHome) {
  const std::string name = "/plan-" + target_name() + ".txt";
  const Variable xdg("XDG_CACHE_HOME", "/xdg"), home("HOME", "/me");
  cache.set(nullptr);
  EXPECT_EQ(path_costs_file(), "/xdg/polyattn" + name);
  xdg.set("");
  EXPECT_EQ(path_costs_file(), "/me/.cache/polyattn" + name);
  home.set(nullptr);
  EXPECT_EQ(path_costs_file(), "");
  EXPECT_FALSE(write_path_costs_file(odd_costs()));
  EXPECT_EQ(read_path_costs_file(), std::nullopt);
}

// A folder of the file's name.
TEST_F(Plan, WhatIsNoFileIsNotRead) {
  std::filesystem::create_directories(path_costs_file() + "/full");
  EXPECT_EQ(read_path_costs_file(), std::nullopt);
  EXPECT_FALSE(write_path_costs_file(odd_costs()));
  EXPECT_EQ(folder.file_count(), 1);
}

TEST_F(Plan, FilesThatAreWrongAreNotRead) {
  ASSERT_TRUE(write_path_costs_file(odd_costs()));
  const std::string text = read_text(path_costs_file());
  const std::string costs = to_string(odd_costs());
  std::vector<std::string> wrong = {
      "", text + "1\n", replaced(text, "costs 3", "costs 2"),
      replaced(text, "\n", "\nnot ")};  // of another processor
  for (const Spoil spoil : kSpoilt)
    wrong.push_back(replaced(text, costs, spoil(costs)));
  for (const std::string& content : wrong) {
    write_text(path_costs_file(), content);
    EXPECT_EQ(read_path_costs_file(), std::nullopt) << content;
  }
}

// The paths of calls that are made, and the costs they went by.
std::string decisions() {
  std::string text = to_string(path_costs());
  for (const char* formula : {"x/sqrt(N)", "x^2/N", "x^2/sum"}) {
    for (const Causal causal : {Causal::kNone, Causal::kLast}) {
      for (const std::int64_t n : {48, 96, 192, 300, 600}) {
        Case c = square(n);
        c.formula = formula, c.causal = causal;
        const Instance instance(c);
        Outputs out = instance.outputs(DType::kF32);
        SerialParallel serial;  // threads would not survive a fork
        std::vector<std::byte> workspace(attention_forward_workspace(
            instance.inputs(), instance.config(), 1));
        const Path path =
            attention_forward(instance.inputs(), instance.config(),
                              {out.o.tensor, {}, {}}, workspace, serial);
        text += path == Path::kLinear ? 'l' : 'd';
      }
    }
  }
  return text;
}

// Each body runs in a process that has installed nothing, in a home of its own.
class PlanProcessDeathTest : public ::testing::Test {
 protected:
  static std::string decided_in_new_process(bool kept) {
    const TemporaryFolder folder;
    ::testing::FLAGS_gtest_death_test_style = "fast";
    const auto body = [&] {
      const Variable home("HOME", folder.path().c_str());
      const Variable cache("POLYATTN_CACHE", nullptr);
      const Variable xdg("XDG_CACHE_HOME", nullptr);
      const Variable wish("POLYATTN_PLAN", nullptr);
      // A file that would make everything dense.
      if (kept) write_path_costs_file(simple_costs(0, 1));
      write_text(folder / "decisions", decisions());
      std::_Exit(0);
    };
    EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
    EXPECT_EQ(folder.file_count(), kept ? 2 : 1);
    return read_text(folder / "decisions");
  }
};

// No call measures, or looks at or leaves anything in a home.
TEST_F(PlanProcessDeathTest, CallsFollowFromShapeAndTargetAlone) {
  const std::string first = decided_in_new_process(false);
  EXPECT_EQ(first.find(to_string(path_costs())), 0U) << first;
  EXPECT_TRUE(contains(first, "d") && contains(first, "l"));
  EXPECT_EQ(decided_in_new_process(false), first);
  EXPECT_EQ(decided_in_new_process(true), first);
}

}  // namespace
}  // namespace polyattn::test
