// The files that we hand out: configs/ and the table in docs/config.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "support.h"
#include "train/run/config.h"
#include "train/run/fields.h"

namespace polyattn::run {
namespace config_files_test {

namespace fs = std::filesystem;

const fs::path kSource = POLYATTN_SOURCE_DIR;

// A file is that of a task, or a recipe for one: TASK-NAME.toml.
TEST(ConfigFiles, ThereIsOneForEveryTask) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kSource / "configs")) {
    if (entry.is_directory()) continue;  // configs/problems
    const std::string name = entry.path().filename().string();
    const Config config = read_config(entry.path());
    if (name == config.task.name + ".toml") {
      names.insert(name);
    } else {
      EXPECT_TRUE(name.starts_with(config.task.name + "-")) << name;
      EXPECT_NE(config, default_config(config.task.name)) << name;
    }
  }
  std::set<std::string> expected;
  for (const std::string& task : task_names()) {
    expected.insert(task + ".toml");
  }
  EXPECT_EQ(names, expected);
}

TEST(ConfigFiles, HoldTheDefaultsAsTheySay) {
  for (const std::string& task : task_names()) {
    const Config config = read_config(kSource / "configs" / (task + ".toml"));
    Config expected = default_config(task);
    // These have no data of their own, and the files say so.
    if (task == "images") expected.task.path = "data/my-images";
    if (task == "imagenet") expected.task.path = "data/imagenet";
    if (task == "tiny-imagenet") {
      expected.task.path = "data/tiny-imagenet-200";
    }
    if (task == "problem") expected.task.path = "configs/problems/heat.toml";
    if (task == "aan") expected.task.path = "data/aan";
    if (task == "text") expected.task.path = "data/my-text.txt";
    EXPECT_EQ(config, expected)
        << testing::PrintToString(config_differences(config, expected));
  }
}

// The task that stands for others with the same defaults.
const std::vector<std::pair<std::string, std::string>> kColumns = {
    {"fashion-mnist", "fashion-mnist, mnist"},
    {"cifar10", "cifar10, images"},
    {"imagenet", "imagenet"},
    {"tiny-imagenet", "tiny-imagenet"},
    {"sotu", "sotu, brown, text"},
    {"listops", "listops"},
    {"imdb", "imdb"},
    {"cifar10-pixels", "cifar10-pixels"},
    {"pathfinder", "pathfinder"},
    {"aan", "aan"},
    {"sotu-pairs", "sotu-pairs"},
    {"recall", "recall"},
    {"copy", "copy"},
    {"convection", "convection, reaction, wave, heat, poisson, problem"}};

std::string allowed_text(const Field& field) {
  if (field.name() == "task.name") return "a task";
  if (!field.choices.empty()) return choices_text(field);
  const std::string range = field.range.to_string();
  return range.empty() ? std::string(type_name(field.get(Config()))) : range;
}

std::string documented_table() {
  std::string text = "| key | meaning | allowed |";
  std::string rule = "|---|---|---|";
  for (const auto& [task, title] : kColumns) {
    text += " " + title + " |";
    rule += "---|";
  }
  text += "\n" + rule + "\n";
  for (const Field& field : fields()) {
    text += "| `" + field.name() + "` | " + std::string(field.meaning) + " | " +
            allowed_text(field) + " |";
    for (const auto& [task, title] : kColumns) {
      const bool heeded = (find_task(task)->kind & field.tasks) != 0;
      const std::string value = value_text(field.get(default_config(task)));
      text += heeded ? " `" + value + "` |" : " |";
    }
    text += "\n";
  }
  return text;
}

TEST(ConfigDocs, TheTableIsThatOfTheCode) {
  const std::string docs = test::read_text(kSource / "docs" / "config.md");
  const std::string table = documented_table();
  EXPECT_NE(docs.find(table), std::string::npos)
      << "docs/config.md must have this table:\n"
      << table;
}

TEST(ConfigDocs, TasksOfAColumnHaveTheSameDefaults) {
  for (const auto& [task, other] :
       {std::pair{"fashion-mnist", "mnist"}, std::pair{"cifar10", "images"},
        std::pair{"sotu", "text"}, std::pair{"sotu", "brown"},
        std::pair{"convection", "reaction"}, std::pair{"convection", "wave"},
        std::pair{"convection", "heat"}, std::pair{"convection", "poisson"},
        std::pair{"convection", "problem"}}) {
    Config config = default_config(other);
    config.task.name = task;
    EXPECT_EQ(config, default_config(task));
  }
}

}  // namespace config_files_test
}  // namespace polyattn::run
