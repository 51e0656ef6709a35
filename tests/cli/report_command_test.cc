// report and dashboard as a user meets them. Whether a build has the page is
// known when it has been built: both kinds are right here.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/program.h"
#include "run_polyattn.h"
#include "support/temporary_folder.h"
#include "train/run/records.h"

namespace polyattn::cli::report_command_test {
namespace {

class ReportCommandLine : public testing::Test {
 protected:
  void SetUp() override {
    run::RunInfo info;
    info.state = run::RunState::kFinished;
    info.task = "fashion-mnist";
    info.activation = "softmax";
    info.result = {.loss = 1, .accuracy = 0.5};
    std::filesystem::create_directories(folder_ / "run");
    run::write_run_info(folder_ / "run", info);
  }

  std::string path(const std::string& name) const {
    return "'" + (folder_ / name).string() + "'";
  }

  test::TemporaryFolder folder_;
};

TEST_F(ReportCommandLine, PrintsTheDocument) {
  const Ended ended = run_polyattn("report --json " + path("run"));
  ASSERT_EQ(ended.exit_code, base::kExitDone);
  const auto json = nlohmann::json::parse(ended.text);
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("runs").at(0).at("accuracy"), 0.5);
}

TEST_F(ReportCommandLine, WritesThePageOrSaysThatThereIsNone) {
  const Ended ended = run_polyattn("report " + path("run") + " 2>&1");
  const auto page = folder_ / "run" / "report.html";
  if (ended.exit_code == base::kExitDone) {
    EXPECT_NE(ended.text.find(page.string()), std::string::npos) << ended.text;
    const std::string html = test::read_text(page);
    EXPECT_NE(html.find("\"schema\":1"), std::string::npos);
    EXPECT_EQ(html.find("__POLYATTN_REPORT__"), std::string::npos);
  } else {
    EXPECT_EQ(ended.exit_code, base::kExitFailure);
    EXPECT_TRUE(contains(ended, "this build has no page")) << ended.text;
    EXPECT_FALSE(std::filesystem::exists(page));
  }
}

TEST_F(ReportCommandLine, MistakesAreSaid) {
  const Ended nothing = run_polyattn("report 2>&1");
  EXPECT_EQ(nothing.exit_code, base::kExitUsage);
  EXPECT_TRUE(contains(nothing, "--theory")) << nothing.text;
  EXPECT_EQ(run_polyattn("dashboard 2>&1").exit_code, base::kExitUsage);
  EXPECT_EQ(run_polyattn("dashboard . --port 65536 2>&1").exit_code,
            base::kExitUsage);
  const Ended both =
      run_polyattn("report --json -o x.html " + path("run") + " 2>&1");
  EXPECT_EQ(both.exit_code, base::kExitUsage);
  EXPECT_TRUE(contains(both, "--out")) << both.text;
  const Ended absent = run_polyattn("report --json " + path("no") + " 2>&1");
  EXPECT_EQ(absent.exit_code, base::kExitFailure);
  EXPECT_TRUE(contains(absent, "there is no such folder")) << absent.text;
}

}  // namespace
}  // namespace polyattn::cli::report_command_test
