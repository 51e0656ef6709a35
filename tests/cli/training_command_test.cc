// train, eval, generate and compare as a user meets them: real processes,
// killed at random instants.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/message_of.h"
#include "support/records.h"
#include "train/run/records.h"
#include "training.h"

namespace polyattn::cli {
namespace {

// Makes every weight of a file NaN: all bits of the data set.
void spoil(const fs::path& safetensors) {
  std::string bytes = test::read_text(safetensors);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(8 + header),
            bytes.end(), '\xff');
  std::ofstream(safetensors, std::ios::binary) << bytes;
}

TEST_F(Training, KilledAtRandomInstantsItEndsInTheSameNumbers) {
  const fs::path whole = folder_ / "whole";
  const fs::path parts = folder_ / "parts";
  ASSERT_EQ(
      run(small({"train", "--task", "fashion-mnist", "--out", whole.string()})),
      0)
      << log();
  const auto arguments = small({"train", "--task", "fashion-mnist", "--out",
                                parts.string(), "--resume"});
  std::mt19937 random(std::random_device{}());
  int kills = 0;
  for (int session = 0;; ++session) {
    ASSERT_LT(session, 40) << log();
    const std::uintmax_t seen = fs::exists(parts / "metrics.jsonl")
                                    ? fs::file_size(parts / "metrics.jsonl")
                                    : 0;
    const pid_t child = start(arguments);
    if (kills < 6) {
      // Some way into new records, then a moment more: anywhere in a step, a
      // record or a checkpoint.
      wait_for_bytes(parts / "metrics.jsonl", seen + 1 + random() % 3000,
                     child);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
      ::kill(child, SIGKILL);
    }
    const int code = wait_for(child);
    if (code == 0) break;
    ASSERT_EQ(code, -SIGKILL) << log();
    ++kills;
  }
  EXPECT_GE(kills, 3);
  EXPECT_EQ(test::timeless(whole), test::timeless(parts));
  const auto info = run::read_run_info(parts);
  EXPECT_EQ(info.state, run::RunState::kFinished);
  EXPECT_EQ(info.result, run::read_run_info(whole).result);
}

TEST_F(Training, ASignalSavesFirst) {
  for (const int number : {SIGINT, SIGTERM}) {
    const fs::path out = folder_ / std::to_string(number);
    auto arguments =
        small({"train", "--task", "fashion-mnist", "--out", out.string()});
    arguments.insert(arguments.end(), {"--set", "record.checkpoint=0", "--set",
                                       "train.steps=100000"});
    const pid_t child = start(arguments);
    wait_for_bytes(out / "metrics.jsonl", 2000, child);
    ::kill(child, number);
    EXPECT_EQ(wait_for(child), 128 + number) << log();
    const auto info = run::read_run_info(out);
    EXPECT_EQ(info.state, run::RunState::kInterrupted);
    EXPECT_GT(info.step, 0);
    EXPECT_EQ(run({"eval", out.string(), "--json"}), 0) << log();
    EXPECT_EQ(nlohmann::json::parse(log()).at("step"), info.step);
  }
}

TEST_F(Training, EvalSaysWhatTheRunSaid) {
  const std::string out = (folder_ / "run").string();
  ASSERT_EQ(run(small({"train", "--task", "fashion-mnist", "--out", out})), 0)
      << log();
  const auto info = run::read_run_info(out);
  ASSERT_EQ(run({"eval", out, "--threads", "2", "--json"}), 0) << log();
  const auto json = nlohmann::json::parse(log());
  EXPECT_EQ(json.at("accuracy").get<double>(), info.result->accuracy);
  EXPECT_EQ(json.at("loss").get<double>(), info.result->loss);
  EXPECT_EQ(json.at("examples"), 64);
  EXPECT_EQ(run({"eval", out, "--split", "validation"}), 2) << log();
  EXPECT_NE(log().find("held nothing out"), std::string::npos) << log();
  EXPECT_EQ(run({"eval", out, "--best"}), 0) << log();
  spoil(fs::path(out) / "checkpoints" / "best.safetensors");
  EXPECT_EQ(run({"eval", out, "--best"}), 1) << log();
  EXPECT_NE(log().find("not finite"), std::string::npos) << log();
}

// A named size, and a student of one of its runs.
TEST_F(Training, NamedModelsAreComparedAndTeach) {
  const std::string out = (folder_ / "compared").string();
  const auto arguments = [&](std::vector<std::string> more) {
    more.insert(more.end(),
                {"--task", "fashion-mnist", "--activations",
                 "softmax,x^3/sqrt(N)", "--seeds", "1", "--json", "--set",
                 "train.steps=2", "--set", "train.batch=16", "--set",
                 "task.path=" + (folder_ / "data").string()});
    return more;
  };
  ASSERT_EQ(run(arguments({"compare", "--model", "vit-tiny28", "--out", out})),
            0)
      << log();
  EXPECT_EQ(nlohmann::json::parse(log()).at("task"),
            "fashion-mnist, vit-tiny28");
  const fs::path teacher = fs::path(out) / "softmax-seed1";
  EXPECT_EQ(run::read_run_info(teacher).model, "vit-tiny28");
  ASSERT_EQ(run({"eval", teacher.string()}), 0) << log();

  const auto student = [&](const fs::path& folder, const fs::path& of) {
    return run(
        arguments({"compare", "--model", "deit-tiny32-distilled", "--out",
                   folder.string(), "--set", "train.teacher=" + of.string()}));
  };
  ASSERT_EQ(student(folder_ / "students", teacher), 0) << log();
  const auto info =
      run::read_run_info(folder_ / "students" / "x3-over-sqrtN-seed1");
  ASSERT_TRUE(info.teacher);
  EXPECT_EQ(info.teacher->run, teacher.string());
  EXPECT_EQ(info.teacher->model, "vit-tiny28");

  EXPECT_EQ(student(folder_ / "orphans", folder_ / "nowhere"), 1) << log();
  EXPECT_NE(log().find("is not the folder of a run"), std::string::npos)
      << log();
  EXPECT_FALSE(fs::exists(folder_ / "orphans"));
  EXPECT_EQ(run(arguments({"compare", "--model", "vit-tiny82"})), 2) << log();
  EXPECT_NE(log().find("did you mean vit-tiny28?"), std::string::npos) << log();
  EXPECT_EQ(run(arguments(
                {"compare", "--model", "vit-tiny28", "--set", "model.dim=32"})),
            2)
      << log();
  EXPECT_NE(log().find("model.dim is 32, but the model vit-tiny28 has 64"),
            std::string::npos)
      << log();
}

TEST_F(Training, EvaluatesWhatItHeldOut) {
  const std::string out = (folder_ / "run").string();
  auto arguments = small({"train", "--task", "fashion-mnist", "--out", out});
  arguments.insert(arguments.end(), {"--set", "task.validation=0.25", "--set",
                                     "train.steps=20"});
  ASSERT_EQ(run(arguments), 0) << log();
  const auto info = run::read_run_info(out);
  EXPECT_EQ(info.split, run::kValidation);
  const auto evaluated = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"eval", out, "--threads", "2", "--json"});
    EXPECT_EQ(run(options), 0) << log();
    return nlohmann::json::parse(log());
  };
  const auto held = evaluated({"--split", "validation"});
  EXPECT_EQ(held.at("loss").get<double>(), info.result->loss);
  EXPECT_EQ(held.at("examples"), 64);
  EXPECT_EQ(held.at("split"), "validation");
  const auto tested = evaluated({});
  EXPECT_EQ(tested.at("split"), "test");
  EXPECT_NE(tested.at("loss"), held.at("loss"));
}

TEST_F(Training, TheoryMeasuresARun) {
  const std::string out = (folder_ / "run").string();
  auto arguments = small({"train", "--task", "fashion-mnist", "--out", out});
  arguments.insert(arguments.end(), {"--set", "train.steps=20"});
  ASSERT_EQ(run(arguments), 0) << log();
  ASSERT_EQ(run({"theory", "--run", out, "--json"}), 0) << log();
  const auto json = nlohmann::json::parse(log());
  EXPECT_EQ(json.at("tokens"), 16);
  ASSERT_EQ(json.at("rows").size(), 4U);  // two layers of two heads
  for (const auto& row : json.at("rows")) {
    EXPECT_EQ(row.at("weight_bound"), 4);
    EXPECT_LE(row.at("weight_norm").get<double>(), 4.0001);
    EXPECT_EQ(row.at("within_bounds"), true);
  }
  EXPECT_EQ(run({"theory", "--run", out}), 0) << log();
  EXPECT_NE(log().find("layer 1 head 1"), std::string::npos) << log();

  // The constant gives x^2 the norm of softmax, by its own words.
  ASSERT_EQ(
      run({"theory", "calibrate", "--run", out, "--degree", "2", "--json"}), 0)
      << log();
  const auto layers = nlohmann::json::parse(log()).at("layers");
  ASSERT_EQ(layers.size(), 3U);  // and all together
  for (const auto& layer : layers) {
    // All rows of full attention see 16 keys, so sqrt(N) is 4.
    EXPECT_NEAR(layer.at("row_constant").get<double>(),
                4 * layer.at("constant").get<double>(),
                1e-4 * layer.at("row_constant").get<double>());
  }
  EXPECT_EQ(run({"theory", "calibrate", "--degree", "2"}), 2) << log();
  EXPECT_EQ(run({"theory", "--run", (folder_ / "nowhere").string()}), 2)
      << log();
}

TEST_F(Training, CompareGoesOnWhereItStopped) {
  const fs::path out = folder_ / "compare";
  const auto arguments =
      small({"compare", "--activations", "softmax, x^3/sqrt(N),x", "--seeds",
             "2", "--out", out.string(), "--json"});
  const pid_t child = start(arguments);
  wait_for_bytes(out / "x3-over-sqrtN-seed1" / "metrics.jsonl", 1000, child);
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child), 128 + SIGTERM) << log();
  const auto first = run::read_run_info(out / "softmax-seed1");
  ASSERT_EQ(first.state, run::RunState::kFinished);

  ASSERT_EQ(run(arguments), 0) << log();
  EXPECT_EQ(run::read_run_info(out / "softmax-seed1").started, first.started);
  // A build without the page says so first.
  const auto json = nlohmann::json::parse(log().substr(log().find("{\n")));
  ASSERT_EQ(json.at("rows").size(), 3U);
  for (const auto& row : json.at("rows")) {
    EXPECT_EQ(row.at("finished").get<int>() + row.at("diverged").get<int>(), 2);
  }
  EXPECT_TRUE(fs::exists(out / "report.md"));
  ASSERT_TRUE(json.contains("report"));
  if (json.at("report").is_null()) {
    EXPECT_NE(log().find("no report.html: this build has no page"),
              std::string::npos)
        << log();
  } else {
    EXPECT_EQ(json.at("report"), (out / "report.html").string());
    EXPECT_TRUE(fs::exists(out / "report.html"));
  }

  // The same again has nothing left to do.
  const auto last = fs::last_write_time(out / "x-seed2" / "metrics.jsonl");
  ASSERT_EQ(run(arguments), 0) << log();
  EXPECT_EQ(fs::last_write_time(out / "x-seed2" / "metrics.jsonl"), last);
}

TEST_F(Training, CompareSearchesSettingsAndThenTests) {
  const fs::path out = folder_ / "compare";
  auto arguments =
      small({"compare", "--activations", "softmax,x", "--seeds", "1", "--grid",
             "train.lr=1e-5,1e-2", "--out", out.string(), "--json"});
  arguments.insert(arguments.end(), {"--set", "train.steps=60"});
  const pid_t child = start(arguments);
  wait_for_bytes(out / "grid" / "x-lr-1e-5-seed1" / "metrics.jsonl", 300,
                 child);
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child), 128 + SIGTERM) << log();
  EXPECT_FALSE(fs::exists(out / "comparison.json"));

  ASSERT_EQ(run(arguments), 0) << log();
  const auto json = nlohmann::json::parse(log().substr(log().find("{\n")));
  const auto& rows = json.at("grid").at("rows");
  ASSERT_EQ(rows.size(), 2U);
  for (const auto& row : rows) EXPECT_EQ(row.at("chosen"), 1) << row;
  EXPECT_EQ(json.at("rows").at(0).at("setting"), "train.lr=1e-2");
  EXPECT_EQ(json.at("split"), "test");
  const auto searched = run::read_run_info(out / "grid/x-lr-1e-2-seed1");
  EXPECT_EQ(searched.split, run::kValidation);
  EXPECT_EQ(searched.test_count, 26);
  EXPECT_EQ(rows.at(1).at("cells").at(1).at("figure").at("mean"),
            *searched.result->accuracy);
  const auto tested = run::read_run_info(out / "x-seed2");
  EXPECT_FALSE(tested.split);
  EXPECT_EQ(tested.test_count, 64);
  EXPECT_FALSE(fs::exists(out / "x-seed1"));

  // A choice that its runs do not bear out is refused.
  std::string file = test::read_text(out / "grid.json");
  file.replace(file.find("\"chosen\": 1"), 11, "\"chosen\": 0");
  std::ofstream(out / "grid.json") << file;
  EXPECT_EQ(run(arguments), 1) << log();
  EXPECT_NE(log().find("has chosen setting 0"), std::string::npos) << log();
}

TEST_F(Training, TheSameWeightsAndBatchesUnderEveryActivation) {
  const fs::path out = folder_ / "compare";
  auto arguments = small({"compare", "--activations", "softmax,softmax/1",
                          "--seeds", "1", "--out", out.string()});
  // Not a formula: a usage error.
  EXPECT_EQ(run(arguments), 2) << log();
  arguments = small({"compare", "--activations", "x/2,0.5 x", "--seeds", "1",
                     "--out", out.string()});
  // Twice the same in canonical form.
  EXPECT_EQ(run(arguments), 2) << log();
  // x^2/sqrt(N) with 16 tokens is x^2/4: the same function, so the same run.
  arguments = small({"compare", "--activations", "x^2/sqrt(N),x^2/4", "--seeds",
                     "1", "--out", out.string()});
  ASSERT_EQ(run(arguments), 0) << log();
  const auto a = run::read_run_info(out / "x2-over-sqrtN-seed1");
  const auto b = run::read_run_info(out / "x2-over-4-seed1");
  EXPECT_NEAR(a.result->loss, b.result->loss, 1e-4);
}

TEST_F(Training, ABudgetSetsTheStepsOnce) {
  const fs::path out = folder_ / "compare";
  const auto arguments =
      small({"compare", "--activations", "softmax", "--seeds", "1", "--budget",
             "8s", "--out", out.string(), "--json"});
  ASSERT_EQ(run(arguments), 0) << log();
  const auto steps = run::read_run_info(out / "softmax-seed1").steps;
  EXPECT_GE(steps, 4);
  ASSERT_EQ(run(arguments), 0) << log();
  EXPECT_EQ(run::read_run_info(out / "softmax-seed1").steps, steps);
}

TEST_F(Training, MistakesAreSaidClearly) {
  const auto refused = [&](const std::vector<std::string>& arguments, int code,
                           const std::string& text) {
    EXPECT_EQ(run(arguments), code) << log();
    EXPECT_NE(log().find(text), std::string::npos) << log();
  };
  refused({"train"}, 2, "configs/");
  refused({"train", "nowhere.toml"}, 2, "nowhere.toml");
  refused({"train", "--task", "fashon-mnist"}, 2, "fashion-mnist");
  refused({"train", "--task", "mnist", "--set", "train.lrr=1"}, 2, "train.lr");
  refused({"train", "--task", "mnist", "--set", "model.activation=x^"}, 2, "^");
  refused({"train", (folder_ / "data").string()}, 2, "--resume");
  refused({"train", "--task", "images", "--set",
           "task.path=" + (folder_ / "nowhere").string()},
          1, "nowhere");
  refused({"train", "--task", "mnist", "--set", "model.activation=1e-60 x^2"},
          2, "zero in f32");
  refused({"compare", "--activations", "softmax,1e-60 x^2", "--budget", "5m"},
          2, "zero in f32");
  auto none_left = small({"compare", "--set", "task.validation=0.5"});
  none_left.insert(none_left.end(), {"--set", "train.batch=200"});
  refused(none_left, 1, "lower train.batch or task.validation");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  refused({"eval", (folder_ / "nowhere").string()}, 2, "config.toml");
  refused({"compare", "--budget", "soon"}, 2, "5m");
  refused({"compare", "--activations", "softmax,,x"}, 2, "empty");
  refused({"compare", "--grid", "train.lrr=1,2", "--grid", "train.lr=1"}, 2,
          "2 problems");
  refused({"compare", "--grid", "train.steps=5,9", "--budget", "5m"}, 2,
          "--budget decides");
  refused({"compare", "--seeds", "0"}, 2, "--seeds");
}

// A small language model on a text that repeats itself.
class Writing : public Training {
 protected:
  std::string trained(const std::string& activation, int steps,
                      const std::vector<std::string>& more = {}) {
    const std::string text = (folder_ / "text.txt").string();
    {
      std::ofstream file(text);
      for (int i = 0; i < 300; ++i) file << "abcdefgh\n";
    }
    const std::string out = (folder_ / "run").string();
    std::vector<std::string> command = {"train", "--task",    "text", "--out",
                                        out,     "--threads", "2"};
    std::vector<std::string> settings = {"task.path=" + text,
                                         "task.context=32",
                                         "model.dim=32",
                                         "model.depth=2",
                                         "model.mlp=64",
                                         "train.batch=8",
                                         "train.lr=5e-3",
                                         "train.steps=" + std::to_string(steps),
                                         "model.activation=" + activation};
    settings.insert(settings.end(), more.begin(), more.end());
    for (const std::string& setting : settings) {
      command.push_back("--set");
      command.push_back(setting);
    }
    EXPECT_EQ(run(command), 0) << log();
    return out;
  }
};

TEST_F(Writing, BeginsAnewWhereTheContextEnds) {
  const std::string out = trained("softmax", 120);
  // Longer than the context: it must begin again in between.
  ASSERT_EQ(run({"generate", out, "--prompt", "abc", "--bytes", "60",
                 "--temperature", "0", "--json"}),
            0)
      << log();
  const auto json = nlohmann::json::parse(log());
  std::string expected = "defgh\n";
  while (expected.size() < 60) expected += "abcdefgh\n";
  EXPECT_EQ(json.at("text"), expected.substr(0, 60));
  ASSERT_EQ(run({"generate", out, "--prompt", "abc", "--stop", "gh",
                 "--temperature", "0", "--json"}),
            0);
  EXPECT_EQ(nlohmann::json::parse(log()).at("text"), "defgh");
  EXPECT_EQ(run({"generate", out, "--top-p", "2"}), 2) << log();
  // softmax has no state of constant size, and says so.
  EXPECT_EQ(run({"generate", out, "--mode", "state"}), 2);
  EXPECT_NE(log().find("softmax is not a polynomial"), std::string::npos);
  EXPECT_EQ(run({"generate", out, "--window", "-1"}), 2) << log();

  ASSERT_EQ(run({"eval", out, "--lengths", "16,128", "--json"}), 0) << log();
  const auto lengths = nlohmann::json::parse(log());
  EXPECT_EQ(lengths.at("lengths").size(), 2U);
  EXPECT_EQ(lengths.at("lengths")[1].at("length"), 128);
  // And beside the run, for its report.
  EXPECT_EQ(
      nlohmann::json::parse(test::read_text(fs::path(out) / "lengths.json"))
          .at("lengths"),
      lengths.at("lengths"));
  ASSERT_EQ(run({"eval", out, "--lengths", "16,128"}), 0) << log();
  EXPECT_NE(log().find("trained at length 32: bits per byte"),
            std::string::npos)
      << log();
  EXPECT_EQ(run({"eval", out, "--lengths", "16,1k"}), 2) << log();
  EXPECT_NE(log().find("--lengths: \"1k\" is no length"), std::string::npos)
      << log();
  EXPECT_EQ(run({"eval", out, "--lengths", "9999"}), 2) << log();
}

TEST_F(Writing, RefusesWhatMakesNoSense) {
  const std::string out = trained("softmax", 2);
  for (const auto& [option, value] :
       {std::pair{"--temperature", "nan"}, std::pair{"--temperature", "inf"},
        std::pair{"--temperature", "-1"}, std::pair{"--top-p", "nan"},
        std::pair{"--top-p", "0"}, std::pair{"--top-k", "-1"},
        std::pair{"--seed", "-1"}, std::pair{"--bytes", "-1"},
        std::pair{"--bytes", "9000000000000000000"}}) {
    EXPECT_EQ(run({"generate", out, option, value}), 2) << option << value;
    EXPECT_NE(log().find(option), std::string::npos) << log();
  }
  spoil(fs::path(out) / "checkpoints" / "best.safetensors");
  EXPECT_EQ(run({"generate", out, "--best"}), 1) << log();
  EXPECT_NE(log().find("not finite"), std::string::npos) << log();
}

// Far beyond the context of the training, where the state no longer grows,
// with decay and a window too.
TEST_F(Writing, GoesOnWithAStateOfConstantSize) {
  const std::vector<std::vector<std::string>> cases = {
      {}, {"model.decay=gate"}, {"model.decay=head", "model.window=8"}};
  for (const std::vector<std::string>& more : cases) {
    const std::string out = trained("x^2/sqrt(N)", 40, more);
    const auto write = [&](const char* mode, const char* bytes) {
      EXPECT_EQ(
          run({"generate", out, "--prompt", "abc", "--bytes", bytes, "--window",
               "0", "--temperature", "0", "--mode", mode, "--json"}),
          0)
          << log();
      return nlohmann::json::parse(log());
    };
    const auto cache = write("cache", "500"), state = write("state", "500");
    EXPECT_EQ(cache.at("text"), state.at("text")) << more.size();
    EXPECT_EQ(state.at("text").get<std::string>().size(), 500U);
    ASSERT_EQ(state.at("speeds").size(), 10U);
    for (const auto& speed : state.at("speeds")) EXPECT_GT(speed, 0);
    EXPECT_EQ(state.at("state"), true);
    EXPECT_EQ(cache.at("state"), false);
    EXPECT_EQ(state.at("training_context"), 32);
    EXPECT_EQ(write("state", "1000").at("state_bytes"),
              state.at("state_bytes"));
    EXPECT_GT(cache.at("state_bytes"), state.at("state_bytes"));
    fs::remove_all(out);
  }
}

// Softmax keeps the rows of its window, a hybrid those and its state.
TEST_F(Writing, KeepsAWindowOfConstantSize) {
  const auto write = [&](const std::string& out, const char* bytes) {
    EXPECT_EQ(run({"generate", out, "--prompt", "abc", "--bytes", bytes,
                   "--mode", "state", "--temperature", "0", "--json"}),
              0)
        << log();
    return nlohmann::json::parse(log());
  };
  for (const char* formula : {"softmax", "x^2/sqrt(N)"}) {
    const std::string out = trained(formula, 3, {"model.window=8"});
    const auto once = write(out, "200"), twice = write(out, "400");
    EXPECT_EQ(twice.at("text").get<std::string>().size(), 400U);
    EXPECT_EQ(twice.at("text").get<std::string>().substr(0, 200),
              once.at("text"));
    EXPECT_EQ(twice.at("state_bytes"), once.at("state_bytes"));
    EXPECT_GT(once.at("state_bytes").get<int>(), 0);
    fs::remove_all(out);
  }
}

TEST_F(Training, TakesTheFileOfAnEquation) {
  std::ofstream(folder_ / "mine.toml") << R"toml(title = "Decay"
coordinates = ["x", "t"]
equation = "u_t = -u"
exact = "sin(x)*exp(-t)"
[domain]
x = ["0", "pi"]
t = ["0", "1"]
[[condition]]
where = "t = 0"
equation = "u = sin(x)"
[sampling]
points = 5
test_points = 7
)toml";
  const std::vector<std::string> command = {
      "compare",     "--task", "mine.toml",    "--activations", "softmax,x^3",
      "--seeds",     "1",      "--out",        "here",          "--threads",
      "1",           "--json", "--set",        "model.dim=4",   "--set",
      "model.mlp=4", "--set",  "train.steps=4"};
  ASSERT_EQ(run(command), 0) << log();
  EXPECT_TRUE(test::contains(log(), "relative_l2")) << log();
  EXPECT_TRUE(fs::exists(folder_ / "here/softmax-seed1/solution.json"));
  ASSERT_EQ(run({"eval", "here/softmax-seed1", "--json"}), 0) << log();
  EXPECT_TRUE(test::contains(log(), "relative_l2")) << log();
  std::ofstream(folder_ / "mine.toml") << "title = 1";
  EXPECT_EQ(run({"train", "--task", "mine.toml"}), 2);
  EXPECT_TRUE(test::contains(log(), "[problem] ")) << log();
}

}  // namespace
}  // namespace polyattn::cli
