// `polyattn data` on a small catalogue, without a network.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <array>
#include <nlohmann/json.hpp>

#include "base/program.h"
#include "captured.h"
#include "cli/data.h"
#include "data/fake_tools.h"
#include "data/made_files.h"
#include "data/sets.h"
#include "data/support.h"

namespace polyattn::cli {
namespace {

using data::test::FakeTools;
using data::test::has;
using data::test::TemporaryFolder;
using data::test::TestVariable;
using data::test::ToySet;
using Json = nlohmann::json;

class DataCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    tools_.serve(toy_.archive());
    tools_.add_npm();
    tools_.add_curl();
    sets_[0] = toy_.entry();
    sets_[1] = toy_.entry();
    sets_[1].name = "other-set";
    sets_[1].archive_sha256 = "no archive has this";
    sets_[2] = {.name = "made",
                .title = "made",
                .licence = "none",
                .origin = data::Origin::kGenerated};
  }

  Outcome run(std::vector<std::string> arguments) {
    CLI::App app{"", "polyattn"};
    DataCommand command(app, sets_);
    arguments.insert(arguments.begin(), "data");
    return run_captured(app, command, std::move(arguments));
  }

  template <typename Error>
  std::string refusal(const std::vector<std::string>& arguments) {
    return test::message_of<Error>([&] { run(arguments); });
  }

  FakeTools tools_;
  ToySet toy_;
  std::array<data::SetEntry, 3> sets_;
  TemporaryFolder cache_;
  TestVariable data_{"POLYATTN_DATA", cache_.path().string()};
};

TEST_F(DataCommandTest, ListShowsWhatIsThere) {
  Outcome list = run({"list"});
  EXPECT_EQ(list.exit_code, base::kExitDone);
  EXPECT_TRUE(has(list.out, "toy        a toy  300 kB  none     absent\n"));
  EXPECT_TRUE(has(list.out, "made when first used"));
  run({"fetch", "toy"});
  EXPECT_TRUE(has(run({"list"}).out,
                  "fetched               " + (cache_ / "toy").string() + "\n"));
}

TEST_F(DataCommandTest, ListAsJson) {
  const Json json = Json::parse(run({"list", "--json"}).out);
  ASSERT_EQ(json["sets"].size(), 3U);
  const Json& toy = json["sets"][0];
  EXPECT_EQ(toy["name"], "toy");
  EXPECT_EQ(toy["state"], "absent");
  EXPECT_EQ(toy["package"], "@scope/toy");
  EXPECT_EQ(toy["archive_sha256"], toy_.entry().archive_sha256);
  EXPECT_EQ(toy["path"], (cache_ / "toy").string());
  EXPECT_EQ(json["sets"][2]["origin"], "generated");
}

TEST_F(DataCommandTest, FetchSaysWhatItDid) {
  const Outcome first = run({"fetch", "toy", "toy", "made"});
  EXPECT_EQ(first.exit_code, base::kExitDone);
  const std::string folder = (cache_ / "toy").string();
  EXPECT_EQ(first.out, "toy: fetched in " + folder +
                           "\nmade: made when first used, nothing to fetch\n");
  EXPECT_TRUE(has(first.err, "toy: downloading @scope/toy@1.0.0\n"));
  EXPECT_TRUE(toy_.is_in(cache_ / "toy"));
  EXPECT_EQ(run({"fetch", "toy"}).out,
            "toy: already fetched in " + folder + "\n");
  EXPECT_EQ(run({"fetch", "toy", "--force"}).out,
            "toy: fetched in " + folder + "\n");
}

TEST_F(DataCommandTest, FetchGoesOnAfterAFailure) {
  const Outcome outcome = run({"fetch", "other-set", "toy"});
  EXPECT_EQ(outcome.exit_code, base::kExitFailure);
  EXPECT_TRUE(has(outcome.err, "polyattn: other-set: the archive is not"));
  EXPECT_TRUE(has(outcome.out, "toy: fetched in "));
}

TEST_F(DataCommandTest, FetchAsJsonHasTheErrors) {
  const Outcome outcome = run({"fetch", "all", "--json"});
  EXPECT_EQ(outcome.exit_code, base::kExitFailure);
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["sets"].size(), 3U);
  EXPECT_EQ(json["sets"][0]["state"], "fetched");
  EXPECT_FALSE(json["sets"][0].contains("error"));
  EXPECT_EQ(json["sets"][1]["state"], "absent");
  EXPECT_TRUE(has(json["sets"][1]["error"].get<std::string>(), "no archive"));
}

TEST_F(DataCommandTest, FetchFromAFile) {
  const std::string file = cache_.write("x.tgz", toy_.archive()).string();
  EXPECT_EQ(run({"fetch", "toy", "--from", file}).exit_code, base::kExitDone);
  EXPECT_EQ(tools_.calls(), "");
  EXPECT_TRUE(has(refusal<base::UsageError>({"fetch", "all", "--from", file}),
                  "--from is the archive of one data set, not of 3"));
}

TEST_F(DataCommandTest, VerifyFindsTheWrongFile) {
  run({"fetch", "toy"});
  const Outcome right = run({"verify"});
  EXPECT_EQ(right.exit_code, base::kExitDone);
  EXPECT_EQ(right.out,
            "toy: all is right in " + (cache_ / "toy").string() + "\n");
  cache_.write("toy/a", "the first FILE");
  const Outcome wrong = run({"verify", "toy"});
  EXPECT_EQ(wrong.exit_code, base::kExitFailure);
  EXPECT_TRUE(has(wrong.out, (cache_ / "toy/a").string() + ": its sha256 is"));
  EXPECT_TRUE(has(wrong.out, "polyattn data fetch --force toy\n"));
  EXPECT_FALSE(has(wrong.out, "toy/b"));
}

TEST_F(DataCommandTest, VerifyAsJson) {
  run({"fetch", "toy"});
  std::filesystem::remove(cache_ / "toy/b");
  const Outcome outcome = run({"verify", "--json"});
  EXPECT_EQ(outcome.exit_code, base::kExitFailure);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["right"], false);
  const Json& files = json["sets"][0]["files"];
  EXPECT_EQ(files[0]["right"], true);
  EXPECT_EQ(files[0]["found"], files[0]["expected"]);
  EXPECT_EQ(files[1]["right"], false);
  EXPECT_EQ(files[1]["found"], "");
}

TEST_F(DataCommandTest, VerifyOfNothing) {
  EXPECT_EQ(run({"verify"}).exit_code, base::kExitDone);
  EXPECT_TRUE(has(run({"verify"}).out, "no data sets are there"));
  EXPECT_TRUE(has(refusal<data::DataError>({"verify", "toy"}),
                  "polyattn data fetch toy"));
}

TEST_F(DataCommandTest, PathIsForScripts) {
  EXPECT_TRUE(has(refusal<data::DataError>({"path", "toy"}),
                  "polyattn data fetch toy"));
  run({"fetch", "toy"});
  EXPECT_EQ(run({"path", "toy"}).out, (cache_ / "toy").string() + "\n");
  EXPECT_EQ(Json::parse(run({"path", "toy", "--json"}).out)["path"],
            (cache_ / "toy").string());
}

TEST_F(DataCommandTest, UnknownNamesAreUsageErrors) {
  EXPECT_TRUE(has(refusal<base::UsageError>({"fetch", "othr-set"}),
                  "did you mean other-set?"));
  EXPECT_TRUE(has(refusal<base::UsageError>({"verify", "xyzzy"}),
                  "there are toy, other-set, made"));
  EXPECT_TRUE(has(refusal<base::UsageError>({"path", "all"}), "'all'"));
  EXPECT_FALSE(std::filesystem::exists(cache_ / ".staging"));
}

TEST_F(DataCommandTest, BadCommandLinesAreRefused) {
  EXPECT_THROW(run({}), CLI::ParseError);
  EXPECT_THROW(run({"fetch"}), CLI::ParseError);
  EXPECT_THROW(run({"path"}), CLI::ParseError);
  EXPECT_THROW(run({"path", "toy", "made"}), CLI::ParseError);
  EXPECT_THROW(run({"list", "toy"}), CLI::ParseError);
  EXPECT_THROW(run({"list", "fetch", "toy"}), CLI::ParseError);
  EXPECT_THROW(run({"remove", "toy"}), CLI::ParseError);
}

TEST_F(DataCommandTest, SizesAreReadable) {
  EXPECT_EQ(data::size_text(0), "0 B");
  EXPECT_EQ(data::size_text(999), "999 B");
  EXPECT_EQ(data::size_text(1000), "1.0 kB");
  EXPECT_EQ(data::size_text(10761413), "11 MB");
  EXPECT_EQ(data::size_text(999999), "1.0 MB");
  EXPECT_EQ(data::size_text(184380000), "184 MB");
  EXPECT_EQ(data::size_text(12000000000), "12 GB");
}

TEST_F(DataCommandTest, CheckNamesImagesThatCannotBeDecoded) {
  const TemporaryFolder folder;
  const std::string jpeg =
      data::test::jpeg_bytes(16, 16, 1, std::string(256, 'x'));
  for (const char* name : {"train/a/1.jpg", "train/b/2.jpg", "test/b/3.jpg"}) {
    folder.write(name, jpeg);
  }
  const std::string path = folder.path().string();
  const Outcome whole = run({"check", path});
  EXPECT_EQ(whole.exit_code, base::kExitDone);
  EXPECT_EQ(whole.out,
            "2 classes, 2 training and 1 test images: all can be decoded\n");
  folder.write("test/b/3.jpg", jpeg.substr(0, jpeg.size() - 20));
  const Outcome broken = run({"check", path, "--json"});
  EXPECT_EQ(broken.exit_code, base::kExitFailure);
  const Json json = Json::parse(broken.out);
  EXPECT_EQ(json.at("train"), 2);
  ASSERT_EQ(json.at("damaged").size(), 1U);
  EXPECT_TRUE(has(json.at("damaged")[0].get<std::string>(), "test/b/3.jpg"));
  EXPECT_TRUE(has(refusal<data::DataError>({"check", path + "/absent"}),
                  "absent: there is no"));
}

TEST_F(DataCommandTest, WhatCannotBeFetchedSaysWhatToDo) {
  EXPECT_TRUE(has(refusal<base::UsageError>({"fetch", "imagenet"}),
                  "cannot be fetched: train with --task imagenet"));
}

}  // namespace
}  // namespace polyattn::cli
