// The command as a user meets it: exit codes and messages.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/program.h"
#include "polyattn/target.h"
#include "run_polyattn.h"

namespace polyattn::cli {
namespace {

constexpr const char* kSmall =
    "bench --op forward --length 16 --width 8 --threads 1 --repeats 1 "
    "--min-time 0 ";

TEST(Command, HelpShowsAnExample) {
  const Ended main = run_polyattn("--help");
  EXPECT_EQ(main.exit_code, base::kExitDone);
  EXPECT_TRUE(contains(main, "bench")) << main.text;
  const Ended bench = run_polyattn("bench --help");
  EXPECT_EQ(bench.exit_code, base::kExitDone);
  EXPECT_TRUE(contains(bench, "Examples:\n  polyattn bench --quick"))
      << bench.text;
  for (const std::string name : {"core", "torch", "derivatives", "train",
                                 "linear", "data", "nystrom", "calibrate"}) {
    EXPECT_TRUE(contains(bench, "\n  " + name)) << name << bench.text;
  }
}

TEST(Command, HelpOfABenchmarkShowsItsOptionsAlone) {
  const Ended core = run_polyattn("bench core --help");
  EXPECT_EQ(core.exit_code, base::kExitDone);
  EXPECT_TRUE(contains(core, "--width")) << core.text;
  EXPECT_FALSE(contains(core, "--longest")) << core.text;
  const Ended linear = run_polyattn("bench linear --help");
  EXPECT_EQ(linear.exit_code, base::kExitDone);
  EXPECT_TRUE(contains(linear, "--longest")) << linear.text;
  EXPECT_FALSE(contains(linear, "--width")) << linear.text;
  EXPECT_TRUE(contains(linear, "Examples:\n  polyattn bench linear"))
      << linear.text;
}

TEST(Command, OldFlagsSayWhatToType) {
  const Ended outcome = run_polyattn("bench --quick --linear 2>&1");
  EXPECT_EQ(outcome.exit_code, base::kExitUsage);
  EXPECT_TRUE(contains(outcome, "polyattn bench linear --quick\n"))
      << outcome.text;
}

TEST(Command, VersionNamesTheTargets) {
  const Ended version = run_polyattn("--version");
  EXPECT_EQ(version.exit_code, base::kExitDone);
  EXPECT_EQ(version.text.find("polyattn " + base::version_number() + " ("), 0U);
  for (const std::string& name : supported_targets()) {
    EXPECT_TRUE(contains(version, name)) << name;
  }
}

TEST(Command, UsageErrorsEndWithTwo) {
  for (const char* arguments :
       {"",
        "--nonsense",
        "nonsense",
        "bench --nonsense",
        "bench --length many",
        "bench --length 0",
        "bench --length 8,-1",
        "bench --dtype f8",
        "bench --op sideways",
        "bench --threads 0",
        "bench --causal middle",
        "bench --heads 4 --kv-heads 3",
        "bench --only nonsense",
        "bench sideways",
        "bench core --capability avx2",
        "bench torch --capability sse2",
        "bench torch --length 8",
        "bench torch --only nonsense",
        "bench --torch --threads 2",
        "bench --batch 1000000000 --length 1000000000"}) {
    const Ended outcome = run_polyattn(std::string(arguments) + " 2>&1");
    EXPECT_EQ(outcome.exit_code, base::kExitUsage) << arguments;
    EXPECT_FALSE(outcome.text.empty()) << arguments;
  }
}

TEST(Command, BadFormulaShowsACaret) {
  const Ended outcome = run_polyattn("bench --activation 'x^3 + y' 2>&1");
  EXPECT_EQ(outcome.exit_code, base::kExitUsage);
  EXPECT_TRUE(contains(outcome, "x^3 + y\n")) << outcome.text;
  EXPECT_TRUE(contains(outcome, "^\n")) << outcome.text;
}

TEST(Command, UnknownTargetListsTheSupportedOnes) {
  for (const std::string arguments : {"--version", "bench --quick"}) {
    const Ended outcome =
        run_polyattn(arguments + " 2>&1", "POLYATTN_TARGET=nonsense");
    EXPECT_EQ(outcome.exit_code, base::kExitUsage) << arguments;
    EXPECT_TRUE(contains(outcome, "nonsense"));
    EXPECT_TRUE(contains(outcome, supported_targets().front()));
  }
}

TEST(Command, TargetIsForced) {
  const std::string last = supported_targets().back();
  const Ended outcome = run_polyattn("--version", "POLYATTN_TARGET=" + last);
  EXPECT_TRUE(contains(outcome, "(" + last + ";")) << outcome.text;
}

TEST(Command, JsonOnStandardOutputIsAlone) {
  const Ended outcome = run_polyattn(std::string(kSmall) + "--json 2>&1");
  ASSERT_EQ(outcome.exit_code, base::kExitDone) << outcome.text;
  const auto list = nlohmann::json::parse(outcome.text).at("rows");
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0]["N"], 16);
}

#ifdef POLYATTN_HAVE_TORCH
TEST(Command, TorchRowsAreMeasuredInEveryModeAndTheBetterCounts) {
  const Ended outcome = run_polyattn(
      "bench torch --only 'forward softmax [1,12,1024,64]' --threads 1 "
      "--repeats 1 --min-time 0 --capability default,avx2 --json 2>/dev/null");
  ASSERT_EQ(outcome.exit_code, base::kExitDone) << outcome.text;
  const auto rows = nlohmann::json::parse(outcome.text).at("rows");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["threads"], 1);
  EXPECT_EQ(rows[0]["goal"], 1.4);
  EXPECT_DOUBLE_EQ(
      rows[0]["value"].get<double>(),
      rows[0]["baseline"].get<double>() / rows[0]["ours"].get<double>());
}
#else
TEST(Command, TorchRowsNeedTorch) {
  const Ended outcome = run_polyattn("bench torch 2>&1");
  EXPECT_EQ(outcome.exit_code, base::kExitUsage);
  EXPECT_TRUE(contains(outcome, "built without torch")) << outcome.text;
}
#endif

TEST(Command, JsonFileComesBesideTheTable) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / "polyattn_cli_json";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const auto path = folder / "out.json";
  const Ended outcome = run_polyattn(std::string(kSmall) + "--json '" +
                                     path.string() + "' 2>/dev/null");
  EXPECT_EQ(outcome.exit_code, base::kExitDone);
  EXPECT_TRUE(contains(outcome, "N=16 D=8")) << outcome.text;
  std::ifstream file(path);
  EXPECT_EQ(nlohmann::json::parse(file).at("rows").size(), 1U);
  // Nothing temporary is left.
  const std::filesystem::directory_iterator begin(folder);
  EXPECT_EQ(std::distance(begin, std::filesystem::directory_iterator()), 1);
  std::filesystem::remove_all(folder);
}

TEST(Command, OutputThatCannotBeWrittenEndsWithOne) {
  const std::string small(kSmall);
  EXPECT_EQ(run_polyattn(small + "--json /nonexistent/out.json 2>&1").exit_code,
            base::kExitFailure);
  if (std::filesystem::exists("/dev/full")) {
    for (const std::string& command :
         {small, std::string("--help "), std::string("plan --help "),
          std::string("bench --help ")}) {
      EXPECT_EQ(run_polyattn(command + "2>/dev/null >/dev/full").exit_code,
                base::kExitFailure)
          << command;
    }
  }
}

}  // namespace
}  // namespace polyattn::cli
