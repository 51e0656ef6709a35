// What a config says when it is right.
#include "train/run/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support.h"
#include "train/run/fields.h"

namespace polyattn::run {
namespace config_test {

using test::TemporaryFolder;

Config parse(std::string_view text, const std::vector<std::string>& sets = {}) {
  return parse_config(text, "a.toml", test::settings_of(sets));
}

TEST(ConfigDefaults, OfEveryTaskAreRight) {
  ASSERT_EQ(task_names().size(), 23U);
  for (const std::string& name : task_names()) {
    const Config config = default_config(name);
    EXPECT_EQ(config.task.name, name);
    EXPECT_NO_THROW(check_config(config)) << name;
  }
}

TEST(ConfigDefaults, DependOnTheTask) {
  EXPECT_EQ(default_config("fashion-mnist").model.pooling, "mean");
  EXPECT_EQ(default_config("fashion-mnist").train.lr, 2e-3);
  EXPECT_EQ(default_config("cifar10").model.dim, 128);
  EXPECT_TRUE(default_config("cifar10").augment.flip);
  EXPECT_EQ(default_config("imagenet").task.image_size, 224);
  EXPECT_TRUE(default_config("imagenet").task.stream);
  EXPECT_EQ(default_config("tiny-imagenet").task.image_size, 64);
  EXPECT_FALSE(default_config("images").task.stream);
  EXPECT_EQ(default_config("sotu").model.positions, "rotary");
  EXPECT_EQ(default_config("sotu").train.steps, 1200);
  EXPECT_EQ(default_config("listops").train.weight_decay, 0);
  EXPECT_EQ(default_config("imdb").task.context, 1024);
}

TEST(ConfigParse, NothingGivesTheDefaults) {
  EXPECT_EQ(parse(""), default_config("fashion-mnist"));
  EXPECT_EQ(parse("[train]\n[model]\n"), default_config("fashion-mnist"));
}

TEST(ConfigParse, TextChangesTheDefaultsOfItsTask) {
  Config expected = default_config("sotu");
  expected.train.lr = 0.5;
  expected.model.activation = "x^3/sqrt(N)";
  expected.model.tied = false;
  expected.train.clip = 2;
  EXPECT_EQ(parse("# the task comes last on purpose\n"
                  "train.lr = 0.5\n"
                  "[model]\n"
                  "activation = 'x^3/sqrt(N)'\n"
                  "tied = false\n"
                  "[task]\n"
                  "name = \"sotu\"\n",
                  {"train.clip=2"}),
            expected);
}

TEST(ConfigParse, SettingsGoBeforeText) {
  const Config config =
      parse("[task]\nname = 'cifar10'\n[train]\nseed = 7\nlr = 0.5\n",
            {"task.name=mnist", "train.lr=0.25", "train.lr=0.125"});
  EXPECT_EQ(config.model.dim, default_config("mnist").model.dim);
  EXPECT_EQ(config.train.seed, 7);
  EXPECT_EQ(config.train.lr, 0.125);
}

TEST(ConfigParse, IntegersAreNumbersToo) {
  EXPECT_EQ(parse("[train]\nlr = 1\n").train.lr, 1.0);
  EXPECT_EQ(parse("", {"train.weight_decay=0"}).train.weight_decay, 0.0);
}

TEST(ConfigParse, LimitsAreAllowed) {
  EXPECT_EQ(parse("[train]\nseed = 9223372036854775807\n").train.seed,
            9223372036854775807);
  EXPECT_EQ(parse("[train]\nfinal_lr = 1\nwarmup = 0\n").train.final_lr, 1.0);
}

TEST(ConfigSetting, SplitsAtTheFirstEqualsSign) {
  const Setting setting = parse_setting(" task.path = a=b ");
  EXPECT_EQ(setting.key, "task.path");
  EXPECT_EQ(setting.value, "a=b");
}

TEST(ConfigSetting, StringsNeedNoQuotes) {
  EXPECT_EQ(parse("", {"model.activation=1 + x + x^2/2"}).model.activation,
            "1 + x + x^2/2");
  EXPECT_EQ(parse("", {"model.activation=\"x^4/sum\""}).model.activation,
            "x^4/sum");
  // Values that TOML would take for something else.
  EXPECT_EQ(parse("", {"task.path=2024"}).task.path, "2024");
  EXPECT_EQ(parse("", {"task.path=1979-05-27"}).task.path, "1979-05-27");
  EXPECT_EQ(parse("", {"task.path=true"}).task.path, "true");
  EXPECT_EQ(parse("", {"task.path="}).task.path, "");
  EXPECT_EQ(parse("", {"task.path=\"a b\" # c"}).task.path, "a b");
}

TEST(ConfigSetting, HasBooleansAndNumbers) {
  EXPECT_FALSE(parse("", {"augment.flip=false"}).augment.flip);
  EXPECT_EQ(parse("", {"train.steps=1_000"}).train.steps, 1000);
  EXPECT_EQ(parse("", {"train.eps=1E-6"}).train.eps, 1e-6);
}

// Files of older versions hold it.
TEST(ConfigFile, ReadsOverAKeyOfThePast) {
  for (const char* value : {"true", "false"}) {
    const Config config =
        parse(std::string("[model]\nfused = ") + value + "\ndim = 128\n", {});
    EXPECT_EQ(config.model.dim, 128);
    EXPECT_EQ(config_text(config).find("fused"), std::string::npos);
  }
  EXPECT_THROW(parse("", {"model.fused=false"}), ConfigError);
  EXPECT_THROW(parse("[train]\nfused = true\n", {}), ConfigError);
}

// A run's file has every key that its version knew.
TEST(ConfigFile, KeysThatARunDidNotKnowMeanWhatWasDoneThen) {
  const Config old = parse_run_config("[model]\ndim = 128\n", "config.toml");
  EXPECT_EQ(old.model.start, "plain");
  EXPECT_EQ(parse("[model]\ndim = 128\n").model.start, "matched");
  const Config kept =
      parse_run_config("[model]\nstart = \"matched\"\n", "config.toml");
  EXPECT_EQ(kept.model.start, "matched");
  EXPECT_EQ(old.model.name, "vit");
  EXPECT_EQ(parse_run_config("[task]\nname = 'sotu'\n", "").model.name, "gpt");
}

TEST(ConfigText, ReadsBackTheSame) {
  for (const std::string& name : task_names()) {
    const Config config = default_config(name);
    EXPECT_EQ(parse(config_text(config)), config) << config_text(config);
  }
}

TEST(ConfigText, KeepsEveryDigitAndCharacter) {
  Config config = default_config("mnist");
  config.train.lr = 0.1 + 0.2;
  config.train.eps = 4.9406564584124654e-324;
  config.train.clip = 1.7976931348623157e308;
  config.train.beta1 = 1.0 / 3;
  config.train.seed = 9007199254740993;  // is no double
  config.task.path = "C:\\a \"b\" # é 'x' = [1]";
  EXPECT_EQ(parse(config_text(config)), config) << config_text(config);
}

TEST(ConfigText, HasEveryKeyOnce) {
  const std::string text = config_text(default_config("sotu"));
  for (const Field& field : fields()) {
    const std::size_t begin =
        text.find(std::string("\n[").append(field.section).append("]\n"));
    ASSERT_NE(begin, std::string::npos) << field.name();
    const std::string section =
        text.substr(begin, text.find("\n[", begin + 1) - begin);
    const std::string line = std::string("\n").append(field.key).append(" = ");
    const std::size_t found = section.find(line);
    ASSERT_NE(found, std::string::npos) << field.name();
    EXPECT_EQ(section.find(line, found + 1), std::string::npos) << field.name();
  }
}

TEST(ConfigText, NumbersShowThatTheyAreNumbers) {
  EXPECT_EQ(value_text(1.0), "1.0");
  EXPECT_EQ(value_text(1e-8), "1e-8");
  EXPECT_EQ(value_text(1e100), "1e+100");
  EXPECT_EQ(value_text(-0.5), "-0.5");
  EXPECT_EQ(value_text(std::int64_t{1}), "1");
  EXPECT_EQ(value_text(true), "true");
  EXPECT_EQ(value_text(std::string("a\"\\\n\x7f")), R"("a\"\\\u000a\u007f")");
}

TEST(ConfigFields, AreDistinctAndInKnownSections) {
  std::set<std::string> names;
  for (const Field& field : fields()) {
    EXPECT_TRUE(names.insert(field.name()).second) << field.name();
    const auto sections = section_names();
    EXPECT_NE(std::find(sections.begin(), sections.end(), field.section),
              sections.end());
    EXPECT_EQ(find_field(field.section, field.key), &field);
  }
}

// A slot that is in the table twice would leave another one out.
TEST(ConfigFields, HaveASlotEach) {
  Config config;
  std::set<const void*> slots;
  for (const Field& field : fields()) {
    std::visit([&](auto* slot) { slots.insert(slot); }, field.slot(config));
  }
  EXPECT_EQ(slots.size(), fields().size());
  EXPECT_EQ(fields().size(), 20U + 38U + 27U + 15U + 7U);
}

TEST(ConfigDescribe, ListsWhatTheTaskHeeds) {
  const std::string sotu = describe_config("sotu");
  EXPECT_NE(sotu.find("\ntrain.lr                    0.002      largest"),
            std::string::npos)
      << sotu;
  EXPECT_NE(sotu.find("task.context"), std::string::npos);
  EXPECT_EQ(sotu.find("model.patch"), std::string::npos);
  EXPECT_NE(describe_config("mnist").find("model.patch"), std::string::npos);
}

TEST(ConfigDifferences, NamesKeysAndBothValues) {
  Config a = default_config("mnist");
  a.train.lr = 0.25;
  Config b = a;
  EXPECT_TRUE(config_differences(a, b).empty());
  b.train.lr = 1;
  b.model.activation = "x";
  EXPECT_EQ(
      config_differences(a, b),
      (std::vector<std::string>{"model.activation is \"softmax\", not \"x\"",
                                "train.lr is 0.25, not 1.0"}));
}

TEST(ConfigFile, IsWrittenAndRead) {
  const TemporaryFolder folder;
  Config config = default_config("imdb");
  config.train.lr = 0.75;
  write_config(folder / "config.toml", config);
  EXPECT_EQ(read_config(folder / "config.toml"), config);
  config.train.lr = 0.5;
  write_config(folder / "config.toml", config);
  EXPECT_EQ(read_config(folder / "config.toml"), config);
  config.train.seed = 3;
  EXPECT_EQ(read_config(folder / "config.toml", {{"train.seed", "3"}}), config);
}

TEST(ConfigFile, ErrorsNameIt) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "missing.toml").string();
  EXPECT_EQ(test::message_of<ConfigError>([&] { read_config(missing); }),
            "[config] cannot read " + missing + ": No such file or directory");
  EXPECT_EQ(test::message_of<ConfigError>([&] { read_config(folder.path()); }),
            "[config] cannot read " + folder.path().string() + ": not a file");
  const std::string nowhere = (folder / "no" / "config.toml").string();
  EXPECT_EQ(test::message_of<ConfigError>([&] {
              write_config(nowhere, default_config("mnist"));
            }).find("[config] cannot write " + nowhere),
            0U);
  const std::string bad = (folder / "bad.toml").string();
  test::write_text(bad, "[train]\nlr = 0\n");
  EXPECT_EQ(test::message_of<ConfigError>([&] { read_config(bad); }),
            "[config] " + bad + ":2:1: train.lr is 0.0, must be above 0");
  test::write_text(bad, std::string((1 << 20) + 1, '\n'));
  EXPECT_EQ(test::message_of<ConfigError>([&] { read_config(bad); }),
            "[config] cannot read " + bad + ": it has more than 1048576 bytes");
}

}  // namespace config_test
}  // namespace polyattn::run
