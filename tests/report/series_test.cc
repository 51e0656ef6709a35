// Records to tables, and files that grow, are cut, or are damaged.
#include "report/series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "report/metrics_file.h"
#include "report/run_json.h"
#include "run_of_bytes.h"
#include "support.h"

namespace polyattn::report {
namespace series_test {

using base::Json;
using test::eval_line;
using test::message_of;
using test::norms_line;
using test::start_line;
using test::TemporaryFolder;
using test::train_line;
using test::write_text;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(RunSeries, TakesEveryKind) {
  RunSeries series;
  series.add(train_line(20, 2.5));
  series.add(eval_line(40, 1.5, 0.25));
  series.add(norms_line(50, kInfinity));
  series.add(R"({"kind":"diverged","step":60,"loss":"nan"})");
  series.add(R"({"kind":"something new","step":61})");
  const Rows& train = series.train().rows();
  ASSERT_EQ(train.size(), 1U);
  EXPECT_EQ(train.step(0), 20);
  EXPECT_EQ(train.value(0, kTrainLoss), 2.5);
  EXPECT_EQ(train.value(0, kTrainGradNorm), 0.5);
  EXPECT_EQ(train.value(0, kTrainRate), 0.001);
  EXPECT_EQ(train.value(0, kTrainItems), 1000);
  EXPECT_EQ(train.value(0, kTrainSeconds), 5);
  const Rows& eval = series.eval().rows();
  ASSERT_EQ(eval.size(), 1U);
  EXPECT_EQ(eval.value(0, kEvalLoss), 1.5);
  EXPECT_EQ(eval.value(0, kEvalAccuracy), 0.25);
  EXPECT_TRUE(series.has_accuracy());
  EXPECT_FALSE(series.has_bits());
  ASSERT_TRUE(series.norms());
  const auto& [layout, facts, table] = *series.norms();
  EXPECT_EQ(layout.layers(), 2U);
  EXPECT_EQ(layout.heads(1), 2U);
  EXPECT_EQ(table.rows().value(0, NormsLayout::kTokens), 49);
  EXPECT_EQ(table.rows().value(0, layout.layer_column(1)), 0.25);
  EXPECT_EQ(table.rows().value(0, layout.layer_column(1) + 1), 23.5);
  EXPECT_EQ(table.rows().value(0, layout.head_column(0, 0)), 1.5);
  EXPECT_EQ(table.rows().value(0, layout.head_column(1, 1) + 1), kInfinity);
  // What decides: the largest weight, Jacobian, score and gradient.
  EXPECT_EQ(table.rows().value(0, 0), kInfinity);
  EXPECT_EQ(table.rows().value(0, 1), 1.5);
  EXPECT_EQ(table.rows().value(0, 2), 1.5);
  EXPECT_EQ(table.rows().value(0, 3), 0.25);
  EXPECT_EQ(series.last_step(), 61);
}

TEST(RunSeries, RefusesWhatIsNoRecord) {
  RunSeries series;
  series.add(train_line(20, 2.5));
  series.add(norms_line(20, 1));
  const std::string train = train_line(40, 1);
  for (const std::string& line :
       {std::string(), std::string("null"), std::string("[]"),
        std::string(R"({"kind":"train"})"),
        std::string(R"({"kind":"train","step":-1})"),
        std::string(R"({"kind":"train","step":1.5})"),
        std::string(R"({"kind":"train","step":"7"})"),
        std::string(R"({"kind":"train","step":99999999999999999999})"),
        std::string(R"({"kind":7,"step":7})"),
        std::string(R"({"kind":"train","step":7,"loss":1})"),
        std::string(R"({"kind":"eval","step":7,"loss":"one"})"),
        std::string(R"({"kind":"eval","step":7,"loss":1,"accuracy":null})"),
        std::string(R"({"kind":"norms","step":7,"weight_mean":3})"),
        std::string(R"({"kind":"norms","step":7,"weight_mean":[1]})"),
        std::string(train.substr(0, train.size() / 2)),
        std::string("{\"kind\":\"train\",\"step\":8,\"x\":\"\xFF\"}"),
        train_line(20, 1), norms_line(30, 1, 3, 2), norms_line(30, 1, 2, 3)}) {
    EXPECT_NE(message_of<base::JsonError>([&] { series.add(line); }), "")
        << line;
  }
  EXPECT_EQ(series.train().total(), 1U);
  EXPECT_EQ(series.eval().total(), 0U);
  EXPECT_EQ(series.norms()->table.total(), 1U);
}

std::string solution_line(std::int64_t step, const base::Json& terms) {
  return base::json_line({{"kind", "eval"},
                          {"step", step},
                          {"loss", 1e-3},
                          {"relative_l1", 0.02},
                          {"relative_l2", 0.03},
                          {"terms", terms}});
}

TEST(RunSeries, HasTheErrorsAndTermsOfSolutions) {
  RunSeries series;
  series.add(solution_line(10, {{"residual", 2.0}, {"initial", "inf"}}));
  series.add(solution_line(20, {{"residual", 1.0}, {"initial", 0.5}}));
  EXPECT_TRUE(series.has_errors());
  EXPECT_FALSE(series.has_accuracy());
  EXPECT_EQ(series.terms(), (std::vector<std::string>{"residual", "initial"}));
  const Rows& eval = series.eval().rows();
  EXPECT_EQ(eval.value(0, kEvalRelativeL1), 0.02);
  EXPECT_EQ(eval.value(0, kEvalRelativeL2), 0.03);
  EXPECT_EQ(eval.value(1, kEvalTerms), 1);
  EXPECT_EQ(eval.value(0, kEvalTerms + 1), kInfinity);
  const base::Json run = base::parse_json(
      run_json({}, series, run_budget(100'000, 1), "null", "null"));
  EXPECT_EQ(run["eval"]["relative_l2"], (base::Json{0.03, 0.03}));
  EXPECT_EQ(run["eval"]["terms"]["initial"], (base::Json{"inf", 0.5}));
  EXPECT_FALSE(run.contains("solution"));
}

TEST(RunSeries, RefusesTermsThatDoNotFit) {
  const auto refuses = [](RunSeries& series, const base::Json& terms) {
    EXPECT_NE(message_of<base::JsonError>(
                  [&] { series.add(solution_line(20, terms)); }),
              "")
        << terms;
  };
  base::Json many;
  for (int i = 0; i < 9; ++i) many["t" + std::to_string(i)] = 1;
  const std::string long_name(41, 'a');
  RunSeries empty;
  for (const base::Json& terms :
       {base::Json(3), many, base::Json{{"residual", "two"}},
        base::Json{{"</script>", 1.0}}, base::Json{{"", 1.0}},
        base::Json{{long_name, 1.0}}}) {
    refuses(empty, terms);
  }
  EXPECT_EQ(empty.eval().total(), 0U);
  RunSeries begun;
  begun.add(solution_line(10, {{"residual", 2.0}}));
  refuses(begun, {{"initial", 2.0}});
  refuses(begun, {{"residual", 2.0}, {"initial", 1.0}});
  refuses(begun, base::Json::object());
  EXPECT_EQ(begun.eval().total(), 1U);
}

TEST(RunSeries, RefusesNormsOfUnequalShape) {
  for (const char* key : {"weight_max", "jacobian_mean", "max_abs_score",
                          "grad_norm", "weight_norm"}) {
    base::Json record = base::parse_json(norms_line(1, 1));
    record[key].push_back(record[key][0]);
    RunSeries series;
    EXPECT_NE(message_of<base::JsonError>(
                  [&] { series.add(base::json_line(record)); }),
              "")
        << key;
    EXPECT_FALSE(series.norms());
  }
}

TEST(RunSeries, KnowsWhatLayersAre) {
  base::Json record = base::parse_json(norms_line(1, 1));
  record["layer_kind"] = {"window", "class"};
  record["layer_stage"] = {0, 3};
  record["layer_tokens"] = {16, 65};
  RunSeries series;
  series.add(base::json_line(record));
  series.add(norms_line(2, 1));
  const auto& facts = series.norms()->facts;
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_EQ(facts[1].kind, "class");
  EXPECT_EQ(facts[1].stage, 3);
  EXPECT_EQ(facts[1].tokens, 65);

  RunSeries alike;
  alike.add(norms_line(1, 1));
  EXPECT_EQ(alike.norms()->facts[0].kind, "");
  EXPECT_EQ(alike.norms()->facts[0].stage, -1);
  EXPECT_EQ(alike.norms()->facts[0].tokens, 0);

  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"layer_kind", {"window"}},
                                                 {"layer_kind", {1, 2}},
                                                 {"layer_kind", "window"},
                                                 {"layer_stage", {0, -1}},
                                                 {"layer_stage", {0, 1001}},
                                                 {"layer_stage", {0, 1.5}},
                                                 {"layer_tokens", {16, 0}},
                                                 {"layer_tokens", {16, "inf"}},
                                                 {"layer_tokens", {16}}}) {
    base::Json bad = base::parse_json(norms_line(1, 1));
    bad[key] = value;
    RunSeries none;
    EXPECT_NE(
        message_of<base::JsonError>([&] { none.add(base::json_line(bad)); }),
        "")
        << key << value;
    EXPECT_FALSE(none.norms());
  }
}

TEST(RunSeries, RefusesMoreNormsThanAnyModelHas) {
  RunSeries series;
  EXPECT_NE(message_of<base::JsonError>([&] {
              series.add(norms_line(1, 1, 100, 100));
            }).find("more than"),
            std::string::npos);
  series.add(norms_line(1, 1, 32, 64));
  EXPECT_EQ(series.norms()->table.total(), 1U);
}

TEST(RunSeries, TakesOneStart) {
  RunSeries series;
  EXPECT_EQ(series.start(), "");
  series.add(start_line("inf"));
  EXPECT_EQ(series.start(),
            R"({"factor":0.5,"gain":[[0.25,0.25],[0.25,0.25]],)"
            R"("weight_before":[[8,8],[8,"inf"]],"weight":[[1,1],[1,1]],)"
            R"("softmax":[[2,2],[2,2]]})");
  const std::string before = series.start();
  EXPECT_EQ(message_of<base::JsonError>([&] { series.add(start_line(3)); }),
            "a second start");
  EXPECT_EQ(series.start(), before);
}

TEST(RunSeries, RefusesAStartThatIsNone) {
  const auto flaw = [](const std::string& key, const base::Json& value) {
    base::Json record = base::parse_json(start_line(3));
    if (value.is_discarded()) {
      record.erase(key);
    } else {
      record[key] = value;
    }
    RunSeries series;
    const std::string message = message_of<base::JsonError>(
        [&] { series.add(base::json_line(record)); });
    EXPECT_EQ(series.start(), "");
    return message;
  };
  const base::Json none(base::Json::value_t::discarded);
  EXPECT_EQ(flaw("step", 1), "a start that is not at step 0");
  EXPECT_EQ(flaw("factor", none), "\"factor\" is missing");
  EXPECT_NE(flaw("factor", "much"), "");
  for (const char* key : {"gain", "weight_before", "weight", "softmax"}) {
    const std::string quoted = '"' + std::string(key) + '"';
    EXPECT_EQ(flaw(key, none), quoted + " is missing");
    EXPECT_EQ(flaw(key, 3), quoted + " is no list");
    for (const char* value :
         {"[[1,2]]", "[[1,2],[3]]", "[[1,2],[3,4],[5,6]]", "[[1,2],3]",
          "[[1,2],[3,null]]", "[[1,2],[3,\"x\"]]", "[[1,2],[3,[4]]]"}) {
      EXPECT_NE(flaw(key, base::parse_json(value)), "") << key << value;
    }
  }
  RunSeries series;
  EXPECT_NE(message_of<base::JsonError>([&] {
              series.add(start_line(1, 100, 100));
            }).find("more than"),
            std::string::npos);
  series.add(start_line(1, 32, 64));
  EXPECT_NE(series.start(), "");
}

TEST(RunOfBytes, IsJsonWhateverTheBytesAre) {
  const std::string line = train_line(1, 1);
  for (const std::string& metrics :
       {std::string(), line, line + norms_line(1, 1), std::string("\n\n{}\n"),
        std::string("\0\xFF\n", 3), line.substr(9), line + line}) {
    const base::Json json = base::parse_json(test::run_of_bytes(metrics, "{}"));
    EXPECT_EQ(json["maps"], nullptr);
    EXPECT_LE(json["points"].get<int>(), 1);
  }
  const auto start_within = [](std::size_t budget) {
    return base::parse_json(
        test::run_of_bytes(start_line("nan", 4, 8), "{}", budget));
  };
  EXPECT_EQ(start_within(20'000)["start"]["weight_before"][3][7], "nan");
  EXPECT_FALSE(start_within(3'000).contains("start"));
  const base::Json maps = test::small_maps(3, 2);
  EXPECT_EQ(base::parse_json(test::run_of_bytes(line, maps.dump()))["maps"],
            maps);
}

class Metrics : public testing::Test {
 protected:
  Metrics() : path_(folder_ / "metrics.jsonl"), file_(path_, "") {}

  void append(const std::string& text) {
    std::ofstream(path_, std::ios::binary | std::ios::app) << text;
  }
  std::size_t records() const { return file_.series().train().total(); }

  TemporaryFolder folder_;
  std::filesystem::path path_;
  MetricsFile file_;
};

TEST_F(Metrics, ReadsWhatIsAdded) {
  EXPECT_FALSE(file_.refresh());
  EXPECT_EQ(file_.warning(), "");
  append(train_line(20, 1));
  EXPECT_TRUE(file_.refresh());
  EXPECT_FALSE(file_.refresh());
  EXPECT_EQ(records(), 1U);
  const std::string line = train_line(40, 1);
  append(line.substr(0, 30));
  EXPECT_FALSE(file_.refresh());
  EXPECT_EQ(records(), 1U);
  append(line.substr(30) + train_line(60, 1));
  EXPECT_TRUE(file_.refresh());
  EXPECT_EQ(records(), 3U);
  EXPECT_EQ(file_.warning(), "");
}

TEST_F(Metrics, ReadsAFileOfManyPieces) {
  std::string text;
  for (int i = 1; i <= 8'000; ++i) text += train_line(i, 1.0 / i);
  append(text);
  EXPECT_TRUE(file_.refresh());
  EXPECT_EQ(records(), 8'000U);
  EXPECT_EQ(file_.series().last_step(), 8'000);
  EXPECT_LE(file_.series().train().rows().size(), 2 * kMaxPoints);
}

TEST_F(Metrics, StartsOverWhenTheFileIsCut) {
  append(train_line(20, 1) + train_line(40, 1) + train_line(60, 1));
  file_.refresh();
  std::filesystem::resize_file(path_, train_line(20, 1).size());
  EXPECT_TRUE(file_.refresh());
  EXPECT_EQ(records(), 1U);
}

TEST_F(Metrics, StartsOverWhenTheFileWasCutAndIsLongerNow) {
  append(train_line(20, 1) + train_line(40, 1));
  file_.refresh();
  write_text(path_, train_line(20, 1) + train_line(30, 1) + train_line(50, 1));
  EXPECT_TRUE(file_.refresh());
  EXPECT_EQ(records(), 3U);
  EXPECT_EQ(file_.series().train().rows().step(1), 30);
}

TEST_F(Metrics, StartsOverWhenTheFileVanishes) {
  append(train_line(20, 1));
  file_.refresh();
  std::filesystem::remove(path_);
  EXPECT_TRUE(file_.refresh());
  EXPECT_EQ(records(), 0U);
  EXPECT_NE(file_.warning(), "");
  append(train_line(20, 1));
  EXPECT_TRUE(file_.refresh());
  EXPECT_EQ(records(), 1U);
  EXPECT_EQ(file_.warning(), "");
}

TEST_F(Metrics, LeavesOutDamagedLines) {
  append(train_line(20, 1) + "{\"kind\":\n\xFF\xFE\n" + train_line(40, 1));
  EXPECT_TRUE(file_.refresh());
  EXPECT_EQ(records(), 2U);
  EXPECT_EQ(file_.warning(),
            path_.string() +
                ": 2 of 4 lines are damaged and left out (line 2: no JSON at "
                "byte 9)");
}

// Whatever the lines are damaged by, and however many there are.
TEST_F(Metrics, ReadsNoMoreThanAThousandDamagedLines) {
  for (const char* line : {"\n", "x\n", "{}\n"}) {
    std::string text = train_line(20, 1);
    for (int i = 0; i < 100'000; ++i) text += line;
    write_text(path_, text + train_line(40, 1));
    EXPECT_TRUE(file_.refresh());
    EXPECT_EQ(records(), 1U);  // not the one behind them
    EXPECT_EQ(file_.warning().find(path_.string() +
                                   ": more than 1000 lines are damaged: the "
                                   "rest is left out (line 2: "),
              0U)
        << file_.warning();
    append(train_line(60, 1));
    EXPECT_FALSE(file_.refresh());
    EXPECT_EQ(records(), 1U);
    EXPECT_NE(file_.warning(), "");
    std::filesystem::remove(path_);
  }
}

TEST_F(Metrics, LeavesOutALineWithoutMeasure) {
  append(train_line(20, 1) + std::string(9 << 20, 'x'));
  EXPECT_TRUE(file_.refresh());
  EXPECT_EQ(records(), 1U);
  append(std::string(1 << 20, 'x') + "\n" + train_line(40, 1));
  EXPECT_TRUE(file_.refresh());
  EXPECT_EQ(records(), 2U);
  EXPECT_NE(file_.warning().find("1 of 3 lines"), std::string::npos)
      << file_.warning();
}

TEST_F(Metrics, AFolderInItsPlaceIsNoFile) {
  std::filesystem::create_directory(path_);
  file_.refresh();
  EXPECT_EQ(records(), 0U);
}

TEST_F(Metrics, StopsWhenAsked) {
  std::string text;
  for (int i = 1; i <= 1000; ++i) text += train_line(i, 1);
  append(text);
  std::stop_source source;
  source.request_stop();
  file_.refresh(source.get_token());
  EXPECT_EQ(records(), 0U);
  EXPECT_TRUE(file_.refresh());
  EXPECT_EQ(records(), 1000U);
}

}  // namespace series_test
}  // namespace polyattn::report
