// `polyattn theory` as a user meets it, on small matrices.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/program.h"
#include "base/text_table.h"
#include "cli/theory.h"
#include "cli/theory_options.h"
#include "theory/report_text.h"

namespace polyattn::cli::theory_command_test {
namespace {

using Json = nlohmann::json;

struct Outcome {
  int exit_code = -1;
  std::string out;
};

// Parse errors are thrown, as CLI::ParseError.
Outcome run_theory(std::vector<std::string> arguments,
                   const theory::Theory& theory = {}) {
  CLI::App app{"", "polyattn"};
  TheoryCommand command(app, nullptr, theory);
  arguments.insert(arguments.begin(), "theory");
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  EXPECT_TRUE(command.chosen());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  try {
    outcome.exit_code = command.run();
  } catch (...) {
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    throw;
  }
  outcome.out = testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  return outcome;
}

std::vector<std::string> small(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"--degrees", "1,2", "--lengths", "8,32",
                                     "--width",   "8",   "--samples", "30",
                                     "--threads", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    run_theory(arguments);
  } catch (const base::UsageError& error) {
    return error.what();
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A fresh folder, removed at the end.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::path(testing::TempDir()) /
              ("polyattn_theory_" + name)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const {
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

TEST(TheoryCommand, PrintsEveryClaimInAHundredColumns) {
  const Outcome outcome = run_theory(small());
  EXPECT_EQ(outcome.exit_code, base::kExitDone);
  for (const char* part :
       {"1. softmax-norm: THEOREM, holds", "2. softmax-gradient: THEOREM",
        "3. gaussian-norms", "4. projected-norms", "5. causal-row-form",
        "6. typical-softmax: OBSERVATION", "7. other-tokens: OBSERVATION",
        "All theorems hold"}) {
    EXPECT_TRUE(has(outcome.out, part)) << part;
  }
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(base::display_width(line), 100U) << line;
  }
}

TEST(TheoryCommand, JsonHasEveryClaimAndRow) {
  const Outcome outcome = run_theory(small({"--json"}));
  ASSERT_EQ(outcome.exit_code, base::kExitDone);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["lengths"], Json({8, 32}));
  EXPECT_EQ(json["holds"], true);
  ASSERT_EQ(json["claims"].size(), 7U);
  for (const Json& claim : json["claims"]) {
    EXPECT_FALSE(claim["statement"].get<std::string>().empty());
    ASSERT_FALSE(claim["rows"].empty()) << claim["id"];
    const bool theorem = claim["status"] == "theorem";
    EXPECT_EQ(claim["holds"], theorem ? Json(true) : Json(nullptr));
    for (const Json& row : claim["rows"]) {
      EXPECT_TRUE(row["measured"].is_number()) << row;
      EXPECT_TRUE(row["expected"].is_number()) << row;
      EXPECT_EQ(row.contains("relation"), theorem);
      EXPECT_EQ(row["verdict"] == "observed", !theorem);
    }
  }
}

TEST(TheoryCommand, IsTheSameForASeedAndForAnyThreads) {
  const std::vector<std::string> options{"--degrees", "2",       "--lengths",
                                         "16",        "--width", "8",
                                         "--samples", "20",      "--json"};
  const auto with = [&](const char* flag, const char* value) {
    auto arguments = options;
    arguments.insert(arguments.end(), {flag, value});
    return run_theory(arguments).out;
  };
  const std::string one = with("--threads", "1");
  EXPECT_EQ(one, with("--threads", "2"));
  EXPECT_NE(one, with("--seed", "2"));
}

TEST(TheoryCommand, EndsWithOneIfATheoremDoesNotHold) {
  theory::Theory wrong;
  wrong.bounds.norm = [](std::int64_t) { return 1.5; };
  const Outcome bound = run_theory(small(), wrong);
  EXPECT_EQ(bound.exit_code, base::kExitFailure);
  EXPECT_TRUE(has(bound.out, "1. softmax-norm: THEOREM, DOES NOT HOLD"));
  EXPECT_TRUE(has(bound.out, "2. softmax-gradient: THEOREM, holds"));
  EXPECT_TRUE(has(bound.out, "comparisons DO NOT HOLD"));
  EXPECT_FALSE(has(bound.out, "All theorems hold"));

  wrong = {};
  wrong.expectations.jacobian_sq = [](const Activation& a,
                                      const theory::Setting& s) {
    return 3 * theory::expected_jacobian_sq(a, s);
  };
  const Outcome expectation = run_theory(small({"--json"}), wrong);
  EXPECT_EQ(expectation.exit_code, base::kExitFailure);
  const Json json = Json::parse(expectation.out);
  EXPECT_EQ(json["holds"], false);
  EXPECT_EQ(json["claims"][0]["holds"], true);
  EXPECT_EQ(json["claims"][2]["holds"], false);
}

TEST(TheoryCommand, DrawsAPlot) {
  const Folder folder("plot");
  const std::string path = folder.file("norms.svg");
  EXPECT_EQ(run_theory(small({"--plot", path})).exit_code, base::kExitDone);
  std::ifstream file(path);
  const std::string svg((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(svg.find("<svg xmlns="), 0U);
  EXPECT_TRUE(has(svg, "x^2/sqrt(N)"));
  EXPECT_TRUE(has(svg, "</svg>\n"));
}

TEST(TheoryCommand, KnowsBeforeMeasuringThatAPlotCannotBeWritten) {
  const Folder folder("nowhere");
  EXPECT_THROW(run_theory(small({"--plot", folder.file("none/norms.svg")})),
               std::runtime_error);
}

TEST(TheoryCommand, RefusesValuesOutOfRangeByName) {
  struct Case {
    std::vector<std::string> arguments;
    std::vector<std::string> parts;
  };
  for (const Case& c : std::vector<Case>{
           {{"--degrees", "0"}, {"--degrees", "'0'", "1 to 8"}},
           {{"--degrees", "2,9"}, {"--degrees", "'9'", "1 to 8"}},
           {{"--degrees", "two"}, {"--degrees", "'two'", "whole number"}},
           {{"--lengths", "1"}, {"--lengths", "'1'", "2 to 262144"}},
           {{"--lengths", "262145"}, {"--lengths", "'262145'", "2 to 262144"}},
           {{"--lengths", "99999999999999999999"}, {"--lengths", "range"}},
           {{"--lengths", "16,,32"}, {"--lengths", "''"}},
           {{"--lengths", "64..16"}, {"--lengths", "'64..16'", "nothing"}},
           {{"--lengths", "17..31"}, {"--lengths", "'17..31'", "nothing"}},
           {{"--lengths", "16.."}, {"--lengths", "''"}},
           {{"--width", "0"}, {"--width", "0", "1024"}},
           {{"--width", "1025"}, {"--width", "1025", "1024"}},
           {{"--samples", "7"}, {"--samples", "7", "1000000"}},
           {{"--threads", "0"}, {"--threads", "0", "1024"}},
           {{"--nonsense"}, {"--nonsense"}},
           {{"calibrate"}, {"required"}},
           {{"calibrate", "--tokens", "1", "--width", "8", "--degree", "2"},
            {"--tokens", "1", "262144"}},
           {{"calibrate", "--tokens", "8", "--width", "8", "--degree", "9"},
            {"--degree", "9", "8"}},
           {{"--seed", "2", "calibrate", "--tokens", "8", "--width", "8",
             "--degree", "2"},
            {"--seed", "calibrate"}}}) {
    const std::string message = refusal(c.arguments);
    for (const std::string& part : c.parts) {
      EXPECT_TRUE(has(message, part)) << part << " in: " << message;
    }
  }
}

TEST(TheoryOptions, ListsAndRangesOfLengths) {
  using Lengths = std::vector<std::int64_t>;
  EXPECT_EQ(parse_lengths("16..128"), (Lengths{16, 32, 64, 128}));
  EXPECT_EQ(parse_lengths("10..100"), (Lengths{16, 32, 64}));
  EXPECT_EQ(parse_lengths("197,64,128,64"), (Lengths{64, 128, 197}));
  EXPECT_EQ(parse_lengths("197,16..32"), (Lengths{16, 32, 197}));
  EXPECT_EQ(parse_degrees("3..5,1"), (std::vector<int>{1, 3, 4, 5}));
}

TEST(TheoryCommand, CalibratesAPolynomial) {
  const std::vector<std::string> arguments{"calibrate", "--tokens",  "32",
                                           "--width",   "8",         "--degree",
                                           "3",         "--samples", "50"};
  const Outcome text = run_theory(arguments);
  EXPECT_EQ(text.exit_code, base::kExitDone);
  EXPECT_TRUE(has(text.out, "x^3/sqrt(N)")) << text.out;
  auto json_arguments = arguments;
  json_arguments.insert(json_arguments.end(), {"--json", "--causal"});
  const Json json = Json::parse(run_theory(json_arguments).out);
  EXPECT_EQ(json["causal"], true);
  EXPECT_EQ(json["samples"], 50);
  for (const char* form : {"fixed", "row"}) {
    const Json& f = json[form];
    const Activation a = Activation::parse(f["activation"].get<std::string>());
    const double constant = f["constant"].get<double>();
    EXPECT_NEAR(a.coefficient[3], constant, 1e-3 * constant);
    EXPECT_LE(f["interval_99"][0].get<double>(), constant);
    EXPECT_GE(f["interval_99"][1].get<double>(), constant);
  }
}

TEST(TheoryText, ShowsEveryRowThatFails) {
  theory::Claim claim{.id = "wrong", .statement = "Nothing is right."};
  for (const std::int64_t tokens : {8, 16, 32}) {
    theory::Row row{.series = "norm", .subject = "x", .tokens = tokens};
    row.strain = tokens == 8 ? 0.5 : 2;
    row.verdict =
        tokens == 8 ? theory::Verdict::kHolds : theory::Verdict::kFails;
    claim.rows.push_back(row);
  }
  const std::string text = theory::claims_text({claim}, false);
  EXPECT_TRUE(has(text, "1. wrong: THEOREM, DOES NOT HOLD"));
  EXPECT_TRUE(has(text, "N=16"));
  EXPECT_TRUE(has(text, "N=32"));
  EXPECT_FALSE(has(text, "N=8"));
  EXPECT_TRUE(
      has(theory::conclusion({claim}), "2 of 3 comparisons DO NOT HOLD"));
}

TEST(TheoryText, SpeaksOfWhatIsUndecided) {
  theory::Claim claim{.id = "heavy"};
  theory::Row row{.series = "norm"};
  row.verdict = theory::Verdict::kUndecided;
  claim.rows = {row};
  EXPECT_TRUE(has(theory::conclusion({claim}), "1 more"));
  EXPECT_TRUE(has(theory::claims_text({claim}, false), "undecided"));
}

TEST(TheoryText, IsWrappedBetweenWords) {
  EXPECT_EQ(theory::wrapped("one two three four", 10, "> "),
            "> one two\n> three\n> four\n");
  EXPECT_EQ(theory::wrapped("", 10, ""), "");
}

}  // namespace
}  // namespace polyattn::cli::theory_command_test
