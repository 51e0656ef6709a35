// `plan`, `bench calibrate` and `bench linear` as a user meets them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/program.h"
#include "run_polyattn.h"

namespace polyattn::cli::linear_command_test {
namespace {

// Runs with a folder of its own for what the planner keeps.
class LinearCommand : public testing::Test {
 protected:
  LinearCommand()
      : folder_(
            std::filesystem::path(testing::TempDir()) /
            ("polyattn_plan_" + std::to_string(::getpid()) + "_" +
             testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
  }
  ~LinearCommand() override { std::filesystem::remove_all(folder_); }

  Ended run(const std::string& arguments, const std::string& more = "") const {
    return run_polyattn(arguments, "POLYATTN_CACHE='" + folder_.string() +
                                       "' POLYATTN_PLAN= " + more);
  }

  int files() const {
    if (!std::filesystem::exists(folder_)) return 0;
    const std::filesystem::directory_iterator begin(folder_);
    return static_cast<int>(
        std::distance(begin, std::filesystem::directory_iterator()));
  }

  std::filesystem::path folder_;
};

TEST_F(LinearCommand, UsageErrorsEndWithTwo) {
  for (const char* arguments : {"plan",
                                "plan --degree 2",
                                "plan --N 64",
                                "plan --N 0 --degree 2",
                                "plan --N many --degree 2",
                                "plan --N 64 --degree 0",
                                "plan --N 64 --degree 99",
                                "plan --N 64 --D 0 --degree 2",
                                "plan --N 64 --degree 2 --activation x",
                                "plan --N 64 --activation x^",
                                "plan --N 64 --degree 2 --heads 4 --kv-heads 3",
                                "plan --N 64 --degree 2 --causal middle",
                                "bench linear --torch",
                                "bench linear --calibrate",
                                "bench linear --length 8",
                                "bench linear --only nonsense",
                                "bench --longest 8",
                                "bench linear --longest 0",
                                "bench calibrate --width 8",
                                "bench --path sideways",
                                "bench --path linear --activation softmax",
                                "bench --path linear --activation x --stats"}) {
    const Ended outcome = run(std::string(arguments) + " 2>&1");
    EXPECT_EQ(outcome.exit_code, base::kExitUsage) << arguments << outcome.text;
    EXPECT_FALSE(outcome.text.empty()) << arguments;
  }
}

TEST_F(LinearCommand, PlanExplains) {
  const Ended outcome = run("plan -N 16384 --d 64 --degree 2 2>&1");
  ASSERT_EQ(outcome.exit_code, base::kExitDone) << outcome.text;
  for (const std::string text :
       {"2080", "forward is ", "backward is ", "POLYATTN_PLAN"}) {
    EXPECT_TRUE(contains(outcome, text)) << text << "\n" << outcome.text;
  }
  EXPECT_TRUE(contains(outcome, "come with polyattn")) << outcome.text;
  EXPECT_EQ(files(), 0);
}

// Costs that are kept count from the next command on.
TEST_F(LinearCommand, PlanNamesTheCostsItUses) {
  const std::string ask =
      "plan --N 480 --D 16 --degree 2 --forward --json 2>&1";
  const auto before = nlohmann::json::parse(run(ask).text);
  EXPECT_TRUE(before["costs_file"].is_null());
  ASSERT_EQ(run("bench calibrate 2>&1").exit_code, base::kExitDone);
  const auto after = nlohmann::json::parse(run(ask).text);
  EXPECT_EQ(after["costs_file"].get<std::string>().find(folder_.string()), 0U);
  EXPECT_NE(after["directions"][0]["dense_ms"],
            before["directions"][0]["dense_ms"]);
}

TEST_F(LinearCommand, PlanFollowsTheEnvironment) {
  const std::string ask = "plan --N 64 --degree 2 --causal --forward --json ";
  for (const std::string path : {"dense", "linear"}) {
    const Ended outcome = run(ask + "2>&1", "POLYATTN_PLAN=" + path);
    ASSERT_EQ(outcome.exit_code, base::kExitDone) << outcome.text;
    const auto json = nlohmann::json::parse(outcome.text);
    ASSERT_EQ(json["directions"].size(), 1U);
    EXPECT_EQ(json["directions"][0]["path"], path);
    EXPECT_EQ(json["polyattn_plan"], path);
    EXPECT_EQ(json["causal"], "last");
  }
  const Ended wrong = run(ask + "2>&1", "POLYATTN_PLAN=sideways");
  EXPECT_EQ(wrong.exit_code, base::kExitUsage);
  EXPECT_TRUE(contains(wrong, "sideways")) << wrong.text;
}

TEST_F(LinearCommand, CalibrateKeepsWhatItMeasures) {
  const Ended first = run("bench calibrate --json 2>&1");
  ASSERT_EQ(first.exit_code, base::kExitDone) << first.text;
  const auto json = nlohmann::json::parse(first.text);
  EXPECT_TRUE(json["before"].is_null());
  EXPECT_EQ(json["written"], true);
  EXPECT_EQ(json["file"].get<std::string>().find(folder_.string()), 0U);
  EXPECT_TRUE(std::filesystem::exists(json["file"].get<std::string>()));
  const Ended second = run("bench calibrate --json 2>&1");
  ASSERT_EQ(second.exit_code, base::kExitDone) << second.text;
  const auto again = nlohmann::json::parse(second.text);
  for (const char* direction : {"forward", "backward"}) {
    for (const auto& [name, cost] : json["after"][direction].items()) {
      const double kept = again["before"][direction][name];
      EXPECT_NEAR(kept, cost.get<double>(), 1e-4 * cost.get<double>()) << name;
    }
  }
  EXPECT_TRUE(contains(run("bench calibrate 2>&1"), "forward before"));
  EXPECT_EQ(files(), 1);
}

TEST_F(LinearCommand, CalibrateSaysThatItCannotKeepIt) {
  const Ended outcome =
      run("bench calibrate 2>&1", "POLYATTN_CACHE=/dev/null/nowhere");
  EXPECT_EQ(outcome.exit_code, base::kExitFailure);
  EXPECT_TRUE(contains(outcome, "cannot write\n  /dev/null/nowhere/plan-"))
      << outcome.text;
}

TEST_F(LinearCommand, PathOfACaseIsChosen) {
  const Ended outcome = run(
      "bench --path linear --activation x --op forward --length 16 --width 8 "
      "--heads 1 --threads 1 --repeats 1 --min-time 0 --json 2>&1");
  ASSERT_EQ(outcome.exit_code, base::kExitDone) << outcome.text;
  const auto list = nlohmann::json::parse(outcome.text).at("rows");
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0]["path"], "linear");
  EXPECT_TRUE(list[0]["baseline"].is_null());
}

TEST_F(LinearCommand, LinearGivesATableAndJson) {
  std::filesystem::create_directories(folder_);
  const auto path = folder_ / "out.json";
  const Ended outcome =
      run("bench linear --longest 64 --repeats 1 --min-time 0 --json '" +
          path.string() + "' 2>&1");
  ASSERT_EQ(outcome.exit_code, base::kExitDone) << outcome.text;
  for (const std::string text :
       {"planner", "decode step", "x^4/sqrt(N)", "Largest factor a of"}) {
    EXPECT_TRUE(contains(outcome, text)) << text << "\n" << outcome.text;
  }
}

}  // namespace
}  // namespace polyattn::cli::linear_command_test
