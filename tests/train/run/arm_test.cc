#include "train/run/arm.h"

#include <gtest/gtest.h>

#include "polyattn/activation.h"
#include "support.h"

namespace polyattn::run {
namespace arm_test {

using test::message_of;

std::vector<std::string> names_of(const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  for (const Arm& arm : parse_arms(texts, default_config("cifar10"))) {
    names.push_back(arm.name());
  }
  return names;
}

std::string refusal_of_arms(const std::vector<std::string>& texts) {
  return message_of<ConfigError>([&] { names_of(texts); });
}

TEST(Arms, AreSplitTrimmedAndCanonical) {
  EXPECT_EQ(
      names_of({"softmax, x^3/sqrt(N)", "x^2*0.5"}),
      (std::vector<std::string>{"softmax", "x^3/sqrt(N)",
                                Activation::parse("0.5 x^2").to_string()}));
}

TEST(Arms, HaveSettingsInBraces) {
  EXPECT_EQ(names_of({"softmax, x { model.start = plain , train.lr=1e-4 },"
                      "x{model.qk_gain=0.5}"}),
            (std::vector<std::string>{"softmax",
                                      "x{model.start=plain, train.lr=1e-4}",
                                      "x{model.qk_gain=0.5}"}));
  const Config base = default_config("cifar10");
  const Arm arm = parse_arms({"x^2{model.start=plain}"}, base).at(0);
  EXPECT_EQ(arm.activation, "x^2");
  EXPECT_EQ(arm.variant(), "model.start=plain");
  const Config config = arm_config(base, arm, {{"train.lr", "0.5"}});
  EXPECT_EQ(config.model.activation, "x^2");
  EXPECT_EQ(config.model.start, "plain");
  EXPECT_EQ(config.train.lr, 0.5);
  // Of what cannot matter to softmax, a search tries one value.
  const GridSetting parts = {{"model.center_values", "true"},
                             {"model.start_factor", "2"},
                             {"model.learned_coefficients", "head"}};
  Config softmax = base;
  softmax.model.activation = "softmax";
  EXPECT_EQ(arm_config(base, Arm{"softmax"}, parts), softmax);
}

TEST(Arms, ThatAreEmptyOrTheSameAreRefused) {
  const std::string empty = "[config] --activations: there is an empty formula";
  EXPECT_EQ(refusal_of_arms({"softmax,,x"}), empty);
  EXPECT_EQ(refusal_of_arms({""}), empty);
  EXPECT_EQ(refusal_of_arms({"softmax,"}), empty);
  EXPECT_EQ(refusal_of_arms({"{train.lr=1}"}), empty);
  EXPECT_EQ(refusal_of_arms({}), "[config] --activations: there is none");
  EXPECT_EQ(refusal_of_arms({"x^3", "x^3"}),
            "[config] --activations: x^3 occurs twice");
  EXPECT_NE(refusal_of_arms({"x/2,0.5 x"}).find("occurs twice"),
            std::string::npos);
  EXPECT_THROW(names_of({"x^"}), FormulaError);
  EXPECT_EQ(refusal_of_arms({"x{train.lr=1},x{train.lr=1}"}),
            "[config] --activations: x{train.lr=1} occurs twice");
  // By what they come to.
  EXPECT_EQ(refusal_of_arms({"x,x{model.start=matched}"}),
            "[config] --activations: x{model.start=matched} is the same as x");
  EXPECT_EQ(refusal_of_arms({"x{train.lr=1,train.batch=2},"
                             "x{train.batch=2,train.lr=1}"}),
            "[config] --activations: x{train.batch=2, train.lr=1} is the same "
            "as x{train.lr=1, train.batch=2}");
}

TEST(Arms, BracesMustMatch) {
  for (const char* bad : {"x{train.lr=1", "xtrain.lr=1}", "x{{train.lr=1}}",
                          "x{train.lr=1}{train.batch=2}", "x{train.lr=1}/N",
                          "x}train.lr=1{", "x{a=1,softmax"}) {
    EXPECT_NE(refusal_of_arms({bad}).find("do not match"), std::string::npos)
        << bad;
  }
}

TEST(Arms, MistakesInSettingsAreToldAtOnce) {
  EXPECT_EQ(refusal_of_arms({"x{train.lrr=1}"}),
            "[config] --activations: unknown key \"train.lrr\": did you mean "
            "train.lr?");
  EXPECT_EQ(refusal_of_arms({"x{train.lr=fast}"}),
            "[config] --activations: train.lr is a string \"fast\", must be a "
            "number");
  EXPECT_EQ(refusal_of_arms({"x{train.lr=1,train.lr=2}"}),
            "[config] --activations: \"train.lr\" occurs twice in braces");
  for (const char* bad : {"x{}", "x{plain}", "x{=1}", "x{train.lr=1,}"}) {
    EXPECT_NE(refusal_of_arms({bad}).find("is not KEY=VALUE"),
              std::string::npos)
        << bad;
  }
  for (const char* key : {"model.activation", "train.seed", "task.validation",
                          "task.name", "train.threads", "record.every"}) {
    const std::string text = refusal_of_arms({"x{" + std::string(key) + "=1}"});
    EXPECT_NE(text.find("cannot be varied"), std::string::npos) << text;
  }
  EXPECT_EQ(refusal_of_arms({"x{train.sed=1,model.dim=1.5},{train.lr=1}"})
                .substr(0, 22),
            "[config] 3 problems:\n ");
}

}  // namespace arm_test
}  // namespace polyattn::run
