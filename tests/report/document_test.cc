// The document of run folders that were written by hand.
#include "report/document.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "report/page.h"
#include "report/solution_text.h"
#include "report/text.h"
#include "support.h"
#include "train/run/solution.h"

namespace polyattn::report {
namespace document_test {

namespace fs = std::filesystem;
using base::Json;
using test::eval_line;
using test::finished_run;
using test::message_of;
using test::norms_line;
using test::small_maps;
using test::start_line;
using test::TemporaryFolder;
using test::train_line;
using test::write_run;
using test::write_small_run;
using test::write_text;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Json parsed(const Document& document) {
  return base::parse_json(document.text);
}

Json document_of(const std::vector<fs::path>& folders,
                 const DocumentOptions& options = {}) {
  return parsed(make_document(folders, options));
}

Json run_named(const Json& document, const std::string& name) {
  for (const Json& run : document["runs"]) {
    if (run["name"] == name) return run;
  }
  return Json();
}

TEST(Document, HasEveryField) {
  const TemporaryFolder folder;
  run::RunInfo info = finished_run("x^3/sqrt(N)", 7, 0.875);
  info.result->bits_per_byte = 1.5;
  info.model = "vit";
  info.teacher =
      run::Teacher{"runs/large", "vit-small", "softmax", 0.9, "00c0ffee"};
  info.max_weight_norm = kInfinity;
  info.divergence = run::Divergence{12, "loss: nan"};
  write_run(folder / "cubic", info,
            start_line(3.123456789) + train_line(20, 2.123456789) +
                norms_line(50, kInfinity) + train_line(40, kNan) +
                eval_line(40, 0.5, 0.8125));
  const Document made = make_document({folder / "cubic"}, {});
  EXPECT_EQ(made.runs, 1U);
  EXPECT_TRUE(made.warnings.empty());
  const Json json = parsed(made);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["polyattn"], "0.1.0");
  EXPECT_EQ(json["generated"].get<std::string>().size(), 20U);
  EXPECT_EQ(json["live"], false);
  EXPECT_EQ(json["title"], "x^3/sqrt(N) on fashion-mnist, seed 7");
  EXPECT_EQ(json["verdict"], "");
  EXPECT_EQ(json["theory"], nullptr);
  EXPECT_EQ(json["bench"], nullptr);
  ASSERT_EQ(json["comparisons"].size(), 1U);
  ASSERT_EQ(json["runs"].size(), 1U);
  Json run = json["runs"][0];
  EXPECT_EQ(run["updated"].get<std::string>().size(), 20U);
  run.erase("updated");
  const std::string config = run["config"];
  EXPECT_EQ(config, run::config_text(run::default_config("fashion-mnist")));
  run.erase("config");
  const auto head = [](const Json& weight_max) {
    return Json{{"weight_mean", {1.5}},
                {"weight_max", {weight_max}},
                {"jacobian_mean", {1.5}},
                {"jacobian_max", {1.5}},
                {"max_abs_score", {1.5}}};
  };
  const auto layer = [&](const Json& weight_max) {
    return Json{{"grad_norm", {0.25}},
                {"weight_norm", {23.5}},
                {"heads", {head(1.5), head(weight_max)}}};
  };
  const Json expected = {{"name", "cubic"},
                         {"task", "fashion-mnist"},
                         {"activation", "x^3/sqrt(N)"},
                         {"variant", ""},
                         {"seed", 7},
                         {"state", "finished"},
                         {"step", 100},
                         {"steps", 100},
                         {"parameters", 72202},
                         {"version", "0.1.0"},
                         {"command", "polyattn compare"},
                         {"instruction_set", "avx2"},
                         {"threads", 2},
                         {"machine", "EPYC, 2 cores"},
                         {"started", "2026-11-16T09:44:59Z"},
                         {"train_seconds", 30.0},
                         {"eval_seconds", 2.0},
                         {"peak_mb", 400.0},
                         {"loss", 0.125},
                         {"accuracy", 0.875},
                         {"bits_per_byte", 1.5},
                         {"tokens", 49},
                         {"test_count", 10000},
                         {"model", "vit"},
                         {"teacher",
                          {{"run", "runs/large"},
                           {"model", "vit-small"},
                           {"activation", "softmax"},
                           {"accuracy", 0.9}}},
                         {"split", "test"},
                         {"max_weight_norm", "inf"},
                         {"max_jacobian_norm", 4.0},
                         {"divergence", {{"step", 12}, {"what", "loss: nan"}}},
                         {"train",
                          {{"step", {20, 40}},
                           {"loss", {2.1235, "nan"}},
                           {"lr", {0.001, 0.001}},
                           {"grad_norm", {0.5, 0.5}},
                           {"items_per_second", {1000, 1000}},
                           {"seconds", {5, 10}}}},
                         {"eval",
                          {{"points", 1},
                           {"step", {40}},
                           {"loss", {0.5}},
                           {"accuracy", {0.8125}}}},
                         {"norms",
                          {{"points", 1},
                           {"step", {50}},
                           {"tokens", {49}},
                           {"layers", {layer(1.5), layer("inf")}}}},
                         {"start",
                          {{"factor", 0.5},
                           {"gain", {{0.25, 0.25}, {0.25, 0.25}}},
                           {"weight_before", {{8, 8}, {8, 3.1235}}},
                           {"weight", {{1, 1}, {1, 1}}},
                           {"softmax", {{2, 2}, {2, 2}}}}},
                         {"points", 2},
                         {"shown", 2},
                         {"maps", nullptr}};
  EXPECT_EQ(run, expected);
}

TEST(Document, SaysWhatTheLayersOfARunAre) {
  const TemporaryFolder folder;
  base::Json record = base::parse_json(norms_line(1, 1));
  record["layer_kind"] = {"window \"a\"", "class"};
  record["layer_stage"] = {0, 1};
  record["layer_tokens"] = {16, 65};
  write_run(folder / "swin", finished_run("softmax", 1, 0.5),
            base::json_line(record));
  const Json run = parsed(make_document({folder / "swin"}, {}))["runs"][0];
  const Json& layers = run["norms"]["layers"];
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0]["kind"], "window \"a\"");
  EXPECT_EQ(layers[0]["stage"], 0);
  EXPECT_EQ(layers[1]["tokens"], 65);
}

TEST(Document, ComparesTheRunsOfATask) {
  const TemporaryFolder folder;
  for (int seed = 1; seed <= 2; ++seed) {
    const std::string end = "-seed" + std::to_string(seed);
    run::RunInfo softmax = finished_run("softmax", seed, 0.5 + 0.01 * seed);
    softmax.started = "2026-11-16T09:00:00Z";
    write_small_run(folder / ("c/softmax" + end), softmax);
    write_small_run(folder / ("c/a-cubic" + end),
                    finished_run("x^3", seed, 0.7 + 0.01 * seed));
  }
  const Json json = document_of({folder / "c"});
  EXPECT_EQ(json["title"], "Comparison on fashion-mnist");
  ASSERT_EQ(json["comparisons"].size(), 1U);
  const Json& comparison = json["comparisons"][0];
  EXPECT_EQ(json["verdict"], comparison["verdict"]);
  EXPECT_NE(json["verdict"].get<std::string>().find("x^3 reaches 71.50 %"),
            std::string::npos)
      << json["verdict"];
  EXPECT_EQ(comparison["task"], "fashion-mnist");
  EXPECT_EQ(comparison["figure"], "accuracy");
  EXPECT_EQ(comparison["tokens"], 49);
  EXPECT_EQ(comparison["test_count"], 10000);
  EXPECT_EQ(comparison["baseline"], "softmax");
  EXPECT_TRUE(comparison["cautions"].empty());
  ASSERT_EQ(comparison["rows"].size(), 2U);
  // In the order in which they were started.
  EXPECT_EQ(json["runs"][0]["name"], "softmax-seed1");
  const Json& softmax = comparison["rows"][0];
  const Json& cubic = comparison["rows"][1];
  EXPECT_EQ(softmax["activation"], "softmax");
  EXPECT_EQ(softmax["best"], false);
  EXPECT_EQ(softmax["like_best"], false);
  EXPECT_EQ(softmax["pairs"], 2);
  EXPECT_EQ(cubic["best"], true);
  EXPECT_EQ(cubic["like_best"], true);
  EXPECT_NEAR(cubic["difference"].get<double>(), 0.2, 1e-9);
  EXPECT_EQ(comparison["intervals"]["count"], 1);
  EXPECT_EQ(cubic["finished"], 2);
  EXPECT_EQ(cubic["figure"]["count"], 2);
  EXPECT_EQ(cubic["pairs"], 2);
  EXPECT_EQ(cubic["max_weight_norm"], 16);
}

// The same activation and seed of two models are not two runs of one row.
TEST(Document, ComparesEachModelOnItsOwn) {
  const TemporaryFolder folder;
  for (const char* model : {"vit", "vit-tiny28"}) {
    for (const char* activation : {"softmax", "x^3"}) {
      run::RunInfo info = finished_run(activation, 1, 0.5);
      info.model = model;
      write_small_run(folder / "c" / model / activation, info);
    }
  }
  write_small_run(folder / "c/old", finished_run("x^2", 1, 0.5));
  const Json json = document_of({folder / "c"});
  EXPECT_EQ(json["title"], "5 runs in 2 comparisons");
  ASSERT_EQ(json["comparisons"].size(), 2U);
  std::set<std::string> tasks;
  for (const Json& comparison : json["comparisons"]) {
    tasks.insert(comparison["task"].get<std::string>());
    const bool own = comparison["task"] == "fashion-mnist";
    EXPECT_EQ(comparison["rows"].size(), own ? 3U : 2U);
    for (const Json& row : comparison["rows"]) EXPECT_EQ(row["finished"], 1);
  }
  EXPECT_EQ(tasks, (std::set<std::string>{"fashion-mnist",
                                          "fashion-mnist, vit-tiny28"}));
  for (const Json& run : json["runs"]) {
    EXPECT_TRUE(tasks.contains(run["task"].get<std::string>()));
  }
}

TEST(Document, HasWhatWasSearched) {
  const TemporaryFolder folder;
  write_small_run(folder / "c/softmax-seed2", finished_run("softmax", 2, 0.5));
  write_small_run(folder / "c/x-seed2", finished_run("x", 2, 0.5));
  EXPECT_EQ(document_of({folder / "c"})["grids"], Json::array());
  const Json grid = {{"figure", "accuracy"},
                     {"rows", {{{"activation", "softmax"}, {"chosen", 0}}}}};
  write_text(folder / "c/grid.json", grid.dump());
  EXPECT_EQ(document_of({folder / "c"})["grids"], Json::array({grid}));
  EXPECT_EQ(document_of({folder / "c/x-seed2"})["grids"].size(), 1U);
  for (const char* damaged : {"", "[]", "{}", "{\"rows\": []}", "{\"rows"}) {
    write_text(folder / "c/grid.json", damaged);
    EXPECT_EQ(document_of({folder / "c"})["grids"], Json::array()) << damaged;
  }
}

TEST(Document, KeepsTasksApart) {
  const TemporaryFolder folder;
  run::RunInfo text = finished_run("softmax", 1, 0.5);
  text.task = "sotu";
  text.result = {.loss = 0.5, .bits_per_byte = 2.5};
  write_small_run(folder / "a", finished_run("softmax", 1, 0.5));
  write_small_run(folder / "b", text);
  const Json json = document_of({folder.path()});
  ASSERT_EQ(json["comparisons"].size(), 2U);
  EXPECT_EQ(json["comparisons"][1]["figure"], "bits_per_byte");
  EXPECT_EQ(json["verdict"], "");
  EXPECT_EQ(json["title"], "2 runs of 2 tasks");
}

TEST(Document, SaysInWhatConfigsDiffer) {
  const TemporaryFolder folder;
  for (int seed = 1; seed <= 2; ++seed) {
    const fs::path run = folder / std::to_string(seed);
    write_small_run(run, finished_run("softmax", seed, 0.5));
    run::Config config = run::default_config("fashion-mnist");
    config.train.seed = seed;
    config.train.threads = seed;
    config.record.every = 10 + seed;
    if (seed == 2) config.train.lr = 0.25;
    run::write_config(run / "config.toml", config);
  }
  const Json cautions =
      document_of({folder.path()})["comparisons"][0]["cautions"];
  ASSERT_EQ(cautions.size(), 1U) << cautions;
  EXPECT_EQ(cautions[0], "The configs of the runs differ in train.lr.");
}

TEST(Document, ARunThatGoesOnShowsItsLastStep) {
  const TemporaryFolder folder;
  run::RunInfo info = finished_run("softmax", 1, 0.5);
  info.state = run::RunState::kRunning;
  info.step = 20;
  info.result.reset();
  write_small_run(folder / "a", info);
  const Json json = document_of({folder / "a"});
  EXPECT_EQ(json["runs"][0]["step"], 100);
  EXPECT_EQ(json["runs"][0]["loss"], nullptr);
  EXPECT_EQ(json["comparisons"][0]["rows"][0]["other"], 1);
}

TEST(Document, HostileTextStaysText) {
  const TemporaryFolder folder;
  const std::string evil =
      "</script><script>alert(1)</script>\"'\\\n\t\x01\x7F\xFF\xE2\x80\xA8";
  const fs::path run = folder / "c/</script>\xC3\x28\"\n";
  run::RunInfo info = finished_run(evil, 1, 0.5);
  info.task = info.command = info.machine = info.version = evil;
  info.started = info.instruction_set = evil;
  info.divergence = run::Divergence{1, evil};
  fs::create_directories(run.parent_path().parent_path());
  write_small_run(run, info);
  write_text(run / "config.toml", evil + std::string(1, '\0') + evil);
  write_text(run / "metrics.jsonl", train_line(1, 1) + evil + "\n" +
                                        R"({"kind":"</script>","step":2})" +
                                        "\n" + train_line(3, 1));
  const Document document = make_document({folder / "c"}, {.title = evil});
  const Json json = parsed(document);
  EXPECT_EQ(json["runs"].size(), 1U);
  EXPECT_EQ(json["runs"][0]["points"], 2);
  EXPECT_NE(json["title"].get<std::string>().find("</script>"),
            std::string::npos);
  const std::string safe = script_safe(document.text);
  EXPECT_EQ(safe.find('<'), std::string::npos);
  EXPECT_EQ(safe.find("\xE2\x80\xA8"), std::string::npos);
  EXPECT_EQ(base::parse_json(safe), json);
}

TEST(Document, LongTextsAreCut) {
  const TemporaryFolder folder;
  run::RunInfo info = finished_run("softmax", 1, 0.5);
  info.command = std::string(500'000, 'x');
  info.machine.clear();
  for (int i = 0; i < 3000; ++i) info.machine += "é";
  write_small_run(folder / "a", info);
  write_text(folder / "a/config.toml", std::string(60'000, '#'));
  const Document document = make_document({folder / "a"}, {});
  const Json run = parsed(document)["runs"][0];
  EXPECT_LT(document.text.size(), 80'000U);
  EXPECT_EQ(run["command"].get<std::string>().size(), 2003U);
  const std::string machine = run["machine"];
  EXPECT_EQ(machine.find("\xEF\xBF\xBD"), std::string::npos);
  EXPECT_EQ(machine.substr(machine.size() - 3), "...");
}

TEST(Document, DamagedRunsAreNamedAndTheOthersShown) {
  const TemporaryFolder folder;
  const std::string text = R"({"format": 1, "state": "fini)";
  write_small_run(folder / "c/good", finished_run("softmax", 1, 0.5));
  folder.write("c/cut/run.json", text);
  folder.write("c/half/metrics.jsonl", train_line(1, 1));
  write_small_run(folder / "c/types", finished_run("softmax", 1, 0.5));
  Json info = base::parse_json(test::read_text(folder / "c/types/run.json"));
  info["seed"] = "one";
  write_text(folder / "c/types/run.json", info.dump());
  write_small_run(folder / "c/torn", finished_run("x", 1, 0.5));
  const std::string last = train_line(300, 1);
  write_text(folder / "c/torn/metrics.jsonl",
             train_line(20, 1) + last.substr(0, last.size() / 2));
  write_small_run(folder / "c/bare", finished_run("x", 2, 0.5));
  fs::remove(folder / "c/bare/metrics.jsonl");
  fs::remove(folder / "c/bare/config.toml");

  const Document document = make_document({folder / "c"}, {});
  const Json json = parsed(document);
  EXPECT_EQ(document.runs, 3U);
  EXPECT_EQ(run_named(json, "torn")["train"]["step"], Json({20}));
  EXPECT_EQ(run_named(json, "bare")["train"]["step"], Json::array());
  EXPECT_EQ(run_named(json, "bare")["config"], "");
  EXPECT_FALSE(run_named(json, "good").is_null());
  std::string warnings;
  for (const std::string& warning : document.warnings)
    warnings += warning + "\n";
  EXPECT_EQ(document.warnings.size(), 4U) << warnings;
  for (const char* name : {"c/cut/run.json", "c/half has", "c/types/run.json",
                           "c/bare has no config.toml"}) {
    EXPECT_NE(warnings.find(name), std::string::npos) << name << warnings;
  }
  EXPECT_EQ(warnings.find("torn"), std::string::npos);
}

TEST(Document, NoRunAtAllIsAnError) {
  const TemporaryFolder folder;
  folder.write("c/cut/run.json", "{");
  const std::string message = message_of<std::runtime_error>(
      [&] { make_document({folder / "c"}, {}); });
  EXPECT_EQ(message.rfind("there is no run to report on", 0), 0U) << message;
  EXPECT_NE(message.find("c/cut/run.json"), std::string::npos) << message;
}

TEST(Document, ThinsALongRun) {
  const TemporaryFolder folder;
  std::string metrics;
  for (int i = 1; i <= 12'000; ++i) {
    metrics += train_line(i, i == 5'432 ? 77 : 1 + 1.0 / i);
  }
  write_run(folder / "a", finished_run("softmax", 1, 0.5), metrics);
  const Json run = document_of({folder / "a"})["runs"][0];
  EXPECT_EQ(run["points"], 12'000);
  EXPECT_LE(run["shown"].get<std::size_t>(), kMaxPoints);
  EXPECT_GE(run["shown"].get<std::size_t>(), kMaxPoints / 4);
  EXPECT_EQ(run["train"]["step"].size(), run["shown"].get<std::size_t>());
  EXPECT_EQ(run["train"]["step"].front(), 1);
  EXPECT_EQ(run["train"]["step"].back(), 12'000);
  bool found = false;
  for (const Json& loss : run["train"]["loss"]) found = found || loss == 77;
  EXPECT_TRUE(found);
}

TEST(Document, AHundredRunsStayBelowTwoMegabytes) {
  const TemporaryFolder folder;
  std::string metrics;
  for (int i = 1; i <= 150; ++i) {
    const double noise = std::sin(i * 1.7) / 3;
    metrics += train_line(i * 20, 1.23456789 + noise);
    if (i % 5 == 0) metrics += norms_line(i * 20, 7.654321 + noise, 6, 6);
    if (i % 10 == 0) metrics += eval_line(i * 20, 1.1 + noise, 0.61234567);
  }
  for (int i = 0; i < 100; ++i) {
    write_run(folder / ("c/run" + std::to_string(i)),
              finished_run("softmax", i, 0.5), metrics);
  }
  const Document document = make_document({folder / "c"}, {});
  EXPECT_LT(document.text.size(), kMaxPageBytes);
  // Not for want of anything in it: the configs are there, without comments.
  EXPECT_GT(document.text.size(), kMaxPageBytes * 2 / 5);
  const Json json = parsed(document);
  ASSERT_EQ(json["runs"].size(), 100U);
  for (const Json& run : json["runs"]) {
    ASSERT_EQ(run["points"], 150);
    ASSERT_GE(run["shown"].get<int>(), 50);
    ASSERT_GE(run["norms"]["step"].size(), 2U);
    ASSERT_GE(run["eval"]["step"].size(), 10U);
    // Without the comments that there is no room for.
    const std::string config = run["config"];
    ASSERT_NE(config.find("\ndim = 64\n"), std::string::npos) << config;
  }
}

TEST(Document, AConfigIsShortenedByItsCommentsAlone) {
  const TemporaryFolder folder;
  write_run(folder / "a", finished_run("softmax", 1, 0.5), "");
  const std::string comment = "  # " + std::string(3000, 'c') + "\n";
  std::string config = "# whole lines\n\n[task]" + comment;
  config += "path = \"a # \\\" # b\"" + comment;
  config += "name = 'c # d'" + comment;
  polyattn::test::write_text(folder / "a/config.toml", config);
  const auto shown = [&](std::size_t bytes) {
    const Document document =
        make_document({folder.path()}, {.max_bytes = bytes});
    return parsed(document)["runs"][0]["config"].get<std::string>();
  };
  EXPECT_EQ(shown(kMaxPageBytes), config);
  EXPECT_EQ(shown(16000),
            "# without its comments\n[task]\npath = \"a # \\\" # b\"\n"
            "name = 'c # d'\n");
}

TEST(Document, FitsWhatItIsToldTo) {
  const TemporaryFolder folder;
  std::string metrics;
  for (int i = 1; i <= 3000; ++i) metrics += train_line(i, 1.0 / i);
  for (const char* name : {"a", "b", "c"}) {
    write_run(folder / name, finished_run("softmax", 1, 0.5), metrics);
  }
  DocumentOptions options;
  std::size_t before = std::numeric_limits<std::size_t>::max();
  for (const std::size_t bytes : {1'000'000U, 200'000U, 60'000U, 30'000U}) {
    options.max_bytes = bytes;
    const std::size_t size =
        make_document({folder.path()}, options).text.size();
    EXPECT_LE(size, bytes);
    EXPECT_LT(size, before);
    before = size;
  }
}

TEST(Document, RunsHaveWhatTheyReachByLength) {
  const TemporaryFolder folder;
  const std::string lengths =
      R"({"weights":"last","split":"test","context":8,"lengths":[{"length":8,)"
      R"("count":9,"loss":0.5,"bits_per_byte":"inf","places":[{"to":8,)"
      R"("count":9,"loss":0.5,"bits_per_byte":0.75}]}]})";
  write_small_run(folder / "a", finished_run("softmax", 1, 0.5));
  write_small_run(folder / "b", finished_run("softmax", 2, 0.5));
  write_small_run(folder / "c", finished_run("softmax", 3, 0.5));
  write_text(folder / "a/lengths.json", lengths);
  write_text(folder / "b/lengths.json", "{}");
  const Document document = make_document({folder.path()}, {});
  const Json json = parsed(document);
  EXPECT_EQ(run_named(json, "a")["lengths"], base::parse_json(lengths));
  EXPECT_FALSE(run_named(json, "b").contains("lengths"));
  EXPECT_FALSE(run_named(json, "c").contains("lengths"));
  ASSERT_EQ(document.warnings.size(), 1U);
  EXPECT_NE(document.warnings[0].find("b/lengths.json: \"weights\" is missing: "
                                      "the lengths are left out"),
            std::string::npos)
      << document.warnings[0];
}

TEST(Document, OneRunOfEachActivationShowsItsMaps) {
  const TemporaryFolder folder;
  for (int seed = 1; seed <= 2; ++seed) {
    for (const std::string activation : {"softmax", "x"}) {
      const fs::path run = folder / (activation + std::to_string(seed));
      write_small_run(run, finished_run(activation, seed, 0.5));
      write_text(run / "maps.json", small_maps(2).dump());
    }
  }
  // The first one of x is damaged, the second steps in.
  write_text(folder / "x1/maps.json", "{}");
  const Document document = make_document({folder.path()}, {});
  const Json json = parsed(document);
  EXPECT_EQ(run_named(json, "softmax1")["maps"], small_maps(2));
  EXPECT_EQ(run_named(json, "softmax2")["maps"], nullptr);
  EXPECT_EQ(run_named(json, "x1")["maps"], nullptr);
  EXPECT_EQ(run_named(json, "x2")["maps"], small_maps(2));
  ASSERT_EQ(document.warnings.size(), 1U);
  EXPECT_NE(document.warnings[0].find("x1/maps.json: \"class_token\" is "
                                      "missing: the maps are left out"),
            std::string::npos)
      << document.warnings[0];
}

TEST(Document, MapsShowFewerInputsWhereThereIsLittleRoom) {
  const TemporaryFolder folder;
  write_small_run(folder / "a", finished_run("softmax", 1, 0.5));
  write_text(folder / "a/maps.json", small_maps(20, 50).dump());
  DocumentOptions options;
  options.max_bytes = 100'000;
  const Document document = make_document({folder / "a"}, options);
  const Json maps = parsed(document)["runs"][0]["maps"];
  EXPECT_LE(document.text.size(), options.max_bytes);
  EXPECT_GE(maps["inputs"].size(), 5U);
  EXPECT_LT(maps["inputs"].size(), 20U);
  EXPECT_EQ(maps["maps"].size(), 50 * maps["inputs"].size());
}

TEST(Document, OneRunOfEachActivationShowsItsSolution) {
  const TemporaryFolder folder;
  const run::Solution solution = {.columns = {"x", {0, 1}},
                                  .rows = {"t", {0, 1}},
                                  .exact = {1, 2, 3, 4},
                                  .predicted = {1, 2, 3, 5}};
  for (int seed = 1; seed <= 2; ++seed) {
    for (const std::string activation : {"softmax", "x"}) {
      const fs::path run = folder / (activation + std::to_string(seed));
      write_small_run(run, finished_run(activation, seed, 0.5));
      run::write_solution(run, solution);
    }
  }
  // The first one of x is damaged, the second steps in.
  write_text(folder / "x1/solution.json", "{}");
  const Document document = make_document({folder.path()}, {});
  const Json json = parsed(document);
  const Json shown = base::parse_json(solution_text(solution));
  EXPECT_EQ(run_named(json, "softmax1")["solution"], shown);
  EXPECT_FALSE(run_named(json, "softmax2").contains("solution"));
  EXPECT_FALSE(run_named(json, "x1").contains("solution"));
  EXPECT_EQ(run_named(json, "x2")["solution"], shown);
  ASSERT_EQ(document.warnings.size(), 1U);
  EXPECT_NE(document.warnings[0].find("x1/solution.json: \"columns\" is "
                                      "missing: the solution is left out"),
            std::string::npos)
      << document.warnings[0];
}

TEST(Document, TakesTheoryAndBench) {
  const TemporaryFolder folder;
  write_small_run(folder / "a", finished_run("softmax", 1, 0.5));
  DocumentOptions options;
  options.title = "Mine";
  options.theory = folder.write("theory.json", R"({"claims": [1, "x"]})");
  options.bench = folder.write("bench.json", R"([{"N": 16}])");
  const Json json = document_of({folder / "a"}, options);
  EXPECT_EQ(json["title"], "Mine");
  EXPECT_EQ(json["theory"], Json({{"claims", {1, "x"}}}));
  EXPECT_EQ(json["bench"], Json::array({Json({{"N", 16}})}));
  options.title = "";
  const Json alone = document_of({}, options);
  EXPECT_EQ(alone["title"], "Theory and speed");
  EXPECT_EQ(alone["runs"], Json::array());
  EXPECT_EQ(alone["theory"], json["theory"]);
  EXPECT_THROW(document_of({folder / "none"}, options), std::runtime_error);

  const auto flaw = [&](const std::string& text) {
    folder.write("theory.json", text);
    return message_of<std::runtime_error>(
        [&] { make_document({folder / "a"}, options); });
  };
  const std::string name =
      "cannot read " + (folder / "theory.json").string() + ": ";
  EXPECT_EQ(flaw("[]"), name + "it is not what polyattn theory --json prints");
  EXPECT_EQ(flaw(R"({"task": "sotu", "rows": []})"),
            name + "it is not what polyattn theory --json prints");
  EXPECT_EQ(flaw("{"), name + "no JSON at byte 2");
  EXPECT_EQ(flaw(std::string((16 << 20) + 1, ' ')),
            name + "it has more than 16777216 bytes");
  EXPECT_EQ(flaw(std::string(1000, '[')),
            name + "values are nested more than 16 deep");
}

TEST(DocumentBuilder, NoRunsYet) {
  DocumentOptions options;
  options.live = true;
  const Json json = base::parse_json(DocumentBuilder(options).build({}));
  EXPECT_EQ(json["live"], true);
  EXPECT_EQ(json["title"], "No runs yet");
  EXPECT_EQ(json["runs"], Json::array());
  EXPECT_EQ(json["comparisons"], Json::array());
}

}  // namespace document_test
}  // namespace polyattn::report
