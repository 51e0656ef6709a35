// `polyattn theory` as a user meets it, on small matrices.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/program.h"
#include "base/text_table.h"
#include "captured.h"
#include "cli/theory.h"
#include "cli/theory_options.h"
#include "support/message_of.h"
#include "theory/report_text.h"

namespace polyattn::cli::theory_command_test {
namespace {

using Json = nlohmann::json;

Outcome run_theory(std::vector<std::string> arguments,
                   const theory::Theory& theory = {}) {
  CLI::App app{"", "polyattn"};
  TheoryCommand command(app, nullptr, theory);
  arguments.insert(arguments.begin(), "theory");
  return run_captured(app, command, std::move(arguments));
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

using test::contains;

TEST(TheoryCommand, PrintsEveryClaimInAHundredColumns) {
  const Outcome outcome = run_theory(small());
  EXPECT_EQ(outcome.exit_code, base::kExitDone);
  for (const char* part :
       {"1. softmax-norm: THEOREM, holds", "2. softmax-gradient: THEOREM",
        "3. gaussian-norms", "4. projected-norms", "5. causal-row-form",
        "6. typical-softmax: OBSERVATION", "7. other-tokens: OBSERVATION",
        "All theorems hold"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part;
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
  EXPECT_TRUE(contains(bound.out, "1. softmax-norm: THEOREM, DOES NOT HOLD"));
  EXPECT_TRUE(contains(bound.out, "2. softmax-gradient: THEOREM, holds"));
  EXPECT_TRUE(contains(bound.out, "comparisons DO NOT HOLD"));
  EXPECT_FALSE(contains(bound.out, "All theorems hold"));

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

TEST(TheoryCommand, HasSoftmaxAtEveryLengthInJsonAndItsEndsInTheTable) {
  std::vector<std::string> arguments = small();
  arguments[3] = "8,16,32";
  const std::string text = run_theory(arguments).out;
  EXPECT_TRUE(contains(text, "softmax, N=8 "));
  EXPECT_FALSE(contains(text, "softmax, N=16 "));
  EXPECT_TRUE(contains(text, "softmax, N=32 "));
  arguments.push_back("--json");
  const Json claim = Json::parse(run_theory(arguments).out)["claims"][5];
  ASSERT_EQ(claim["rows"].size(), 6U);
  EXPECT_EQ(claim["rows"][2]["N"], 16);
  EXPECT_EQ(claim["rows"][2]["expected"], 4);
  EXPECT_EQ(claim["rows"][3]["expected"], 2);
}

TEST(TheoryCommand, SaysWhatDrawsThePlotNow) {
  const std::string message = refusal(small({"--plot", "norms.svg"}));
  EXPECT_TRUE(contains(message, "polyattn report --theory")) << message;
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
           {{"calibrate", "--tokens", "8,1", "--activations", "x"},
            {"--tokens", "1", "262144"}},
           {{"calibrate", "--activations", "x"}, {"--tokens"}},
           {{"calibrate", "--tokens", "8", "--degree", "2"}, {"--width"}},
           {{"calibrate", "--tokens", "8,9", "--width", "8", "--degree", "2"},
            {"one --tokens"}},
           {{"calibrate", "--tokens", "8", "--degree", "2", "--activations",
             "x"},
            {"--degree", "--activations"}},
           {{"calibrate", "--run", "none", "--activations", "x"},
            {"--activations", "--run"}},
           {{"calibrate", "--run", "none", "--degree", "2", "--factor", "2"},
            {"--factor", "--run"}},
           {{"calibrate", "--tokens", "8", "--activations", "x", "--score-std",
             "0"},
            {"--score-std", "0"}},
           {{"calibrate", "--tokens", "8", "--activations", "x", "--score-std",
             "17"},
            {"--score-std", "17", "16"}},
           {{"calibrate", "--tokens", "8", "--activations", "x", "--factor",
             "-1"},
            {"--factor", "-1"}},
           {{"calibrate", "--tokens", "8", "--activations", "x", "--factor",
             "inf"},
            {"--factor", "inf"}},
           {{"--seed", "2", "calibrate", "--tokens", "8", "--width", "8",
             "--degree", "2"},
            {"--seed", "calibrate"}}}) {
    const std::string message = refusal(c.arguments);
    for (const std::string& part : c.parts) {
      EXPECT_TRUE(contains(message, part)) << part << " in: " << message;
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
  EXPECT_TRUE(contains(text.out, "x^3/sqrt(N)")) << text.out;
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
  ASSERT_EQ(json["matched"].size(), 3U);
  EXPECT_EQ(json["matched"][0]["activation"], "x^3/sqrt(N)");
  EXPECT_EQ(json["matched"][2]["tokens"], 32);
}

TEST(TheoryCommand, PrintsTheMatchedStart) {
  const std::vector<std::string> arguments{"calibrate", "--tokens", "64,256",
                                           "--activations", "x^3 /sqrt(N),x/N"};
  const Outcome text = run_theory(arguments);
  EXPECT_EQ(text.exit_code, base::kExitDone);
  for (const char* part : {"x^3/sqrt(N)", "0.3239", "0.5691", "0.2555",
                           "its norm is not above the target"}) {
    EXPECT_TRUE(has(text.out, part)) << part << " in: " << text.out;
  }
  auto json_arguments = arguments;
  json_arguments.insert(
      json_arguments.end(),
      {"--json", "--causal", "--score-std", "2", "--factor", "0.4"});
  const Json json = Json::parse(run_theory(json_arguments).out);
  EXPECT_EQ(json["causal"], true);
  EXPECT_EQ(json["score_std"], 2);
  EXPECT_EQ(json["factor"], 0.4);
  ASSERT_EQ(json["matched"].size(), 4U);
  for (const Json& row : json["matched"]) {
    const theory::Match expected = theory::matched_gain(
        Activation::parse(row["activation"].get<std::string>()),
        {.tokens = row["tokens"].get<std::int64_t>(),
         .causal = true,
         .score_std = 2,
         .factor = 0.4});
    EXPECT_EQ(row["scale"], expected.scale);
    EXPECT_EQ(row["gain"], expected.gain);
    EXPECT_EQ(row["norm"], *expected.norm);
    EXPECT_EQ(row["softmax_norm"], expected.softmax_norm);
    EXPECT_TRUE(row["reason"].is_null());
  }
}

TEST(TheoryCommand, SaysWhyThereIsNoMatchedStart) {
  const Json json =
      Json::parse(run_theory({"calibrate", "--tokens", "64", "--activations",
                              "x/N,x^4/sum", "--json"})
                      .out);
  EXPECT_EQ(json["matched"][0]["reason"], "its norm is not above the target");
  EXPECT_EQ(json["matched"][0]["gain"], 1.0);
  EXPECT_TRUE(json["matched"][1]["reason"].is_string());
  EXPECT_TRUE(json["matched"][1]["norm"].is_null());
  EXPECT_THROW(
      run_theory({"calibrate", "--tokens", "64", "--activations", "x^^3"}),
      FormulaError);
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
  EXPECT_TRUE(contains(text, "1. wrong: THEOREM, DOES NOT HOLD"));
  EXPECT_TRUE(contains(text, "N=16"));
  EXPECT_TRUE(contains(text, "N=32"));
  EXPECT_FALSE(contains(text, "N=8"));
  EXPECT_TRUE(
      has(theory::conclusion({claim}), "2 of 3 comparisons DO NOT HOLD"));
}

TEST(TheoryText, SpeaksOfWhatIsUndecided) {
  theory::Claim claim{.id = "heavy"};
  theory::Row row{.series = "norm"};
  row.verdict = theory::Verdict::kUndecided;
  claim.rows = {row};
  EXPECT_TRUE(contains(theory::conclusion({claim}), "1 more"));
  EXPECT_TRUE(contains(theory::claims_text({claim}, false), "undecided"));
}

TEST(TheoryText, IsWrappedBetweenWords) {
  EXPECT_EQ(theory::wrapped("one two three four", 10, "> "),
            "> one two\n> three\n> four\n");
  EXPECT_EQ(theory::wrapped("", 10, ""), "");
}

}  // namespace
}  // namespace polyattn::cli::theory_command_test
