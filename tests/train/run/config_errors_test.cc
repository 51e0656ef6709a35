// What a config says when it is wrong: where, what, and what to do.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support.h"
#include "train/run/config.h"

namespace polyattn::run {
namespace config_errors_test {

std::string refusal(std::string_view text,
                    const std::vector<std::string>& sets = {}) {
  return test::message_of<ConfigError>(
      [&] { parse_config(text, "a.toml", test::settings_of(sets)); });
}

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

TEST(ConfigUnknownKey, SuggestsTheNearest) {
  EXPECT_EQ(refusal("[train]\nwarm_up = 0.1\n"),
            "[config] a.toml:2:1: unknown key \"train.warm_up\": did you mean "
            "train.warmup?");
  EXPECT_EQ(refusal("", {"model.actviation=x"}),
            "[config] --set: unknown key \"model.actviation\": did you mean "
            "model.activation?");
}

TEST(ConfigUnknownKey, FindsTheSameKeyInAnotherSection) {
  EXPECT_EQ(refusal("[model]\n  lr = 1\n"),
            "[config] a.toml:2:3: unknown key \"model.lr\": did you mean "
            "train.lr?");
  EXPECT_EQ(refusal("lr = 1\n"),
            "[config] a.toml:1:1: unknown key \"lr\": did you mean train.lr?");
  EXPECT_EQ(refusal("", {"lr=1"}),
            "[config] --set: unknown key \"lr\": did you mean train.lr?");
  EXPECT_EQ(refusal("", {"trian.lr=1"}),
            "[config] --set: unknown key \"trian.lr\": did you mean train.lr?");
  EXPECT_EQ(refusal("[train]\nflipp = true\n"),
            "[config] a.toml:2:1: unknown key \"train.flipp\": did you mean "
            "augment.flip?");
}

TEST(ConfigUnknownKey, ListsTheSectionOtherwise) {
  EXPECT_EQ(refusal("[augment]\nsomething_else = 1\n"),
            "[config] a.toml:2:1: unknown key \"augment.something_else\": "
            "[augment] has flip, crop, mixup, cutmix, crop_scale, crop_ratio, "
            "auto_augment, operations, magnitude, magnitude_std, "
            "color_jitter, hue, erase, erase_value, repeats");
  EXPECT_EQ(refusal("", {"something.else=1"}),
            "[config] --set: unknown key \"something.else\": sections are "
            "task, model, train, augment, record");
}

TEST(ConfigUnknownSection, SuggestsTheNearest) {
  EXPECT_EQ(refusal("[trian]\nlr = 1\nfoo = 2\n"),
            "[config] a.toml:1:2: unknown section \"trian\": did you mean "
            "[train]?");
  EXPECT_EQ(refusal("[optimizer]\n"),
            "[config] a.toml:1:2: unknown section \"optimizer\": sections are "
            "task, model, train, augment, record");
}

TEST(ConfigUnknownSection, WhatIsNoSection) {
  EXPECT_EQ(refusal("train = 3\n"),
            "[config] a.toml:1:1: train is an integer, must be a section: "
            "[train]");
  EXPECT_EQ(
      refusal("[[train]]\nlr = 1\n"),
      "[config] a.toml:1:3: train is an array, must be a section: [train]");
  EXPECT_EQ(refusal("[train.lr]\nx = 1\n"),
            "[config] a.toml:1:2: unknown section \"train.lr\": sections are "
            "task, model, train, augment, record");
}

TEST(ConfigUnknownTask, SuggestsTheNearest) {
  EXPECT_EQ(refusal("[task]\nname = \"cifar\"\n"),
            "[config] a.toml:2:1: unknown task \"cifar\": did you mean "
            "cifar10?");
  EXPECT_EQ(refusal("", {"task.name=x"}),
            "[config] --set: unknown task \"x\": tasks are fashion-mnist, "
            "mnist, cifar10, images, imagenet, tiny-imagenet, sotu, "
            "brown, text, "
            "listops, imdb, cifar10-pixels, pathfinder, aan, sotu-pairs, "
            "recall, copy, convection, reaction, wave, heat, poisson, "
            "problem");
  EXPECT_EQ(refusal("[task]\nname = 3\n"),
            "[config] a.toml:2:1: task.name is an integer 3, must be a string");
  EXPECT_EQ(
      test::message_of<ConfigError>([] { default_config("fashion_mnist"); }),
      "[config] unknown task \"fashion_mnist\": did you mean fashion-mnist?");
  EXPECT_THROW(describe_config(""), ConfigError);
}

TEST(ConfigTypes, BothAreNamed) {
  EXPECT_EQ(refusal("[train]\nlr = \"fast\"\n"),
            "[config] a.toml:2:1: train.lr is a string \"fast\", must be a "
            "number");
  EXPECT_EQ(refusal("[train]\nsteps = 1e3\n"),
            "[config] a.toml:2:1: train.steps is a number 1000.0, must be an "
            "integer");
  EXPECT_EQ(refusal("[model]\ntied = 1\n"),
            "[config] a.toml:2:1: model.tied is an integer 1, must be a "
            "boolean");
  EXPECT_EQ(refusal("[model]\nactivation = true\n"),
            "[config] a.toml:2:1: model.activation is a boolean true, must be "
            "a string");
  EXPECT_EQ(refusal("[train]\nbatch = [1]\n"),
            "[config] a.toml:2:1: train.batch is an array, must be an integer");
  EXPECT_EQ(
      refusal("[task]\npath = 1979-05-27\n"),
      "[config] a.toml:2:1: task.path is a date or time, must be a string");
  EXPECT_EQ(refusal("", {"train.lr=abc"}),
            "[config] --set: train.lr is a string \"abc\", must be a number");
  EXPECT_EQ(refusal("", {"train.lr=[1]"}),
            "[config] --set: train.lr is a string \"[1]\", must be a number");
}

TEST(ConfigTypes, NumbersAreNeverOctal) {
  EXPECT_EQ(refusal("", {"train.steps=010"}),
            "[config] --set: train.steps is a string \"010\", must be an "
            "integer");
  EXPECT_NE(refusal("[train]\nsteps = 010\n").find("a.toml:2:"),
            std::string::npos);
}

TEST(ConfigProblems, AllAreToldAtOnce) {
  EXPECT_EQ(refusal("[train]\nlr = true\n[model]\nfoo_bar_baz = 1\n",
                    {"train.batch=x"}),
            "[config] 3 problems:\n"
            "  a.toml:2:1: train.lr is a boolean true, must be a number\n"
            "  a.toml:4:1: unknown key \"model.foo_bar_baz\": [model] has "
            "name, activation, attention, landmarks, landmark_conv, "
            "landmark_inverse, landmark_scaling, dim, depth, heads, kv_heads, "
            "mlp, patch, pooling, head, mask_zeros, "
            "positions, norm, qk_norm, learned_scale, learned_coefficients, "
            "output_norm, output_gate, center_values, decay, short_conv, "
            "window, "
            "layer_scale, initialisation, start, start_factor, qk_gain, "
            "norm_clamp, norm_factor, dropout, "
            "attention_dropout, "
            "drop_path, tied\n"
            "  --set: train.batch is a string \"x\", must be an integer");
}

TEST(ConfigProblems, ThousandsAreCounted) {
  std::string text = "[train]\n";
  for (int i = 0; i < 20000; ++i) {
    text += "k";
    text += std::to_string(i) + " = 1\n";
  }
  const std::string message = refusal(text);
  EXPECT_EQ(message.find("[config] 20000 problems:\n  a.toml:2:1: "), 0U);
  EXPECT_NE(message.find("\n  and 19990 more"), std::string::npos);
  EXPECT_LT(message.size(), 5000U);
}

TEST(ConfigSyntax, HasLineAndColumn) {
  EXPECT_EQ(refusal("[train]\nlr = \n"),
            "[config] a.toml:2:6: expected value, saw '\\n'");
  EXPECT_EQ(refusal("[train]\nlr = 1\nlr = 2\n"),
            "[config] a.toml:3:6: cannot redefine existing integer 'lr'");
  EXPECT_EQ(refusal("[train]\n[model]\n [train]\n"),
            "[config] a.toml:3:2: cannot redefine existing table 'train'");
  EXPECT_EQ(refusal("[train\n"),
            "[config] a.toml:1:7: expected ']', saw '\\n'");
  EXPECT_EQ(
      refusal("[model]\nactivation = x^3\n"),
      "[config] a.toml:2:14: could not determine value type; strings need "
      "quotes");
  EXPECT_EQ(refusal("", {"train.lr"}),
            "[config] --set \"train.lr\" is not KEY=VALUE, for example "
            "train.lr=3e-4");
  EXPECT_EQ(refusal("", {"=3"}),
            "[config] --set \"=3\" is not KEY=VALUE, for example "
            "train.lr=3e-4");
}

TEST(ConfigHostile, BytesThatAreNoText) {
  using std::string_literals::operator""s;
  EXPECT_EQ(refusal("[train]\nlr\0 = 1\n"s),
            "[config] a.toml:2:3: a byte of value 0: this is no text");
  EXPECT_EQ(refusal("\xff\xfe[\0t\0"s),
            "[config] a.toml:1:4: a byte of value 0: this is no text");
  EXPECT_NE(refusal("[train]\nlr = \"\xff\"\n"), "");
  EXPECT_EQ(refusal("[model]\nactivation = \"\\u001b[31m\"\n"),
            "[config] a.toml:2:1: model.activation is \"\\u001b[31m\", must be "
            "UTF-8 without control characters");
  EXPECT_EQ(refusal("", {"task.path=\xff"}),
            "[config] "
            "--set: task.path is \"\\ufffd\", must be UTF-8 without "
            "control characters");
  EXPECT_EQ(refusal("[\f"),
            "[config] a.toml:1:2: a key is made of letters, digits, _ and -, "
            "or stands in quotes");
  // A value cannot bring other keys in.
  EXPECT_EQ(refusal("", {"train.lr=1\ntrain.seed=2"}),
            "[config] --set: train.lr is a string \"1\\ntrain.seed=2\", must "
            "be a number");
}

TEST(ConfigHostile, SizeAndDepth) {
  EXPECT_EQ(refusal(std::string((1 << 20) + 1, ' ')),
            "[config] a.toml: 1048577 bytes are more than the 1048576 that a "
            "config may have; is this the right file?");
  EXPECT_EQ(refusal(std::string(1 << 20, '\n')), "");
  EXPECT_NE(refusal("[train]\nlr = " + std::string(500000, '[')), "");
  EXPECT_NE(refusal("[train]\nlr = " + repeated("{a=", 100000)), "");
  // Dotted keys, which must not nest without limit.
  EXPECT_EQ(refusal("a" + repeated(".a", 400000) + " = 1\n"),
            "[config] a.toml:1:34: too many dots in a line: a key is "
            "section.key");
  EXPECT_NE(refusal("", {"train.lr={a" + repeated(".a", 400000) + "=1}"}), "");
  EXPECT_LT(refusal("[train]\n" + std::string(100000, 'k') + " = 1\n").size(),
            600U);
  EXPECT_LT(
      refusal("[train]\nlr = \"" + std::string(100000, 'k') + "\"\n").size(),
      300U);
  EXPECT_LT(refusal("[" + std::string(100000, 'k') + "]\n").size(), 300U);
  EXPECT_LT(
      refusal("", {"model.activation=" + std::string(100000, 'x')}).size(),
      300U);
}

}  // namespace config_errors_test
}  // namespace polyattn::run
