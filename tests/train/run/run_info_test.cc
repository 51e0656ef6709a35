// run.json, and its damage.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "runs.h"
#include "support.h"
#include "train/run/records.h"

namespace polyattn::run {
namespace run_info_test {

using test::message_of;
using test::TemporaryFolder;

RunInfo full() {
  RunInfo info;
  info.state = RunState::kDiverged;
  info.task = "cifar10";
  info.activation = "x^3/sqrt(N)";
  info.model = "deit-tiny32-distilled";
  info.variant = "model.start=plain";
  info.seed = 9007199254740993;
  info.step = 12;
  info.steps = 100;
  info.parameters = 205066;
  info.version = "0.1.0";
  info.command = "polyattn train \"a\\b\" é";
  info.instruction_set = "AVX2";
  info.path_costs = "forward 1 2 backward 3 4";
  info.blas = "OpenBLAS 0.3.21, Zen";
  info.kernel_bits = 3;
  info.threads = 2;
  info.machine = "some processor, 2 cores";
  info.started = "2026-11-16T04:00:00Z";
  info.train_seconds = 12.5;
  info.eval_seconds = 0.1;
  info.peak_mb = 512.25;
  info.result = {.loss = 2.25, .accuracy = 0.125};
  info.tokens = 65;
  info.test_count = 10000;
  info.pixels = {{0.25, 0.5, 0.1}, {0.2, 0.3, 1.0 / 3}};
  info.images = ImageShape{3, 32, 10};
  info.teacher =
      Teacher{"runs/large", "vit-small", "softmax", 0.75, "00c0ffee"};
  info.tokenizer = "5ha256";
  info.split = kValidation;
  info.max_weight_norm = std::numeric_limits<double>::infinity();
  info.max_jacobian_norm = 3.5;
  info.divergence = Divergence{12, "norm of layer 2: inf"};
  return info;
}

TEST(RunInfoFile, ReadsBackTheSame) {
  const TemporaryFolder folder;
  for (const RunInfo& info : {RunInfo(), full()}) {
    write_run_info(folder.path(), info);
    EXPECT_EQ(read_run_info(folder.path()), info);
  }
  RunInfo info = full();
  info.result->loss = std::nan("");
  write_run_info(folder.path(), info);
  EXPECT_TRUE(std::isnan(read_run_info(folder.path()).result->loss));
}

TEST(RunInfoFile, HasTheErrorsOfASolution) {
  const TemporaryFolder folder;
  const RunInfo info = test::solution_run("x^3", 1, 0.0271);
  write_run_info(folder.path(), info);
  EXPECT_EQ(read_run_info(folder.path()), info);
  const auto json = base::Json::parse(test::read_text(folder / "run.json"));
  EXPECT_EQ(json.at("relative_l2"), 0.0271);
  EXPECT_EQ(json.at("terms").at("boundary"), 1e-6);
  EXPECT_EQ(outcome_text(info),
            "relative L2 error 0.0271, loss 2.71e-05, 30 s of training");
  base::Json damaged = json;
  damaged["terms"] = {{"boundary", base::Json::array()}};
  test::write_text(folder / "run.json", damaged.dump());
  EXPECT_EQ(
      test::message_of<RecordError>([&] { read_run_info(folder.path()); }),
      "[run] " + (folder / "run.json").string() +
          ": \"terms\" is of type array, must be numbers");
  damaged["terms"] = 3;
  test::write_text(folder / "run.json", damaged.dump());
  EXPECT_EQ(
      test::message_of<RecordError>([&] { read_run_info(folder.path()); }),
      "[run] " + (folder / "run.json").string() +
          ": \"terms\" is of type number, must be an object");
}

// The report and programs of others look for them there.
TEST(RunInfoFile, FiguresAreMembersOfTheFileItself) {
  const TemporaryFolder folder;
  const auto figures = [&](const RunInfo& info) {
    write_run_info(folder.path(), info);
    const auto json = base::Json::parse(test::read_text(folder / "run.json"));
    return base::Json{json.at("loss"), json.at("accuracy"),
                      json.at("bits_per_byte")};
  };
  EXPECT_EQ(figures(full()), (base::Json{2.25, 0.125, nullptr}));
  EXPECT_EQ(figures(RunInfo()), (base::Json{nullptr, nullptr, nullptr}));
}

TEST(RunInfoFile, EveryStateHasAName) {
  const TemporaryFolder folder;
  for (const auto& [state, name] :
       {std::pair{RunState::kRunning, "running"},
        std::pair{RunState::kFinished, "finished"},
        std::pair{RunState::kDiverged, "diverged"},
        std::pair{RunState::kInterrupted, "interrupted"}}) {
    EXPECT_EQ(name_of(state), name);
    RunInfo info;
    info.state = state;
    write_run_info(folder.path(), info);
    EXPECT_EQ(read_run_info(folder.path()).state, state);
  }
}

TEST(RunInfoFile, TextThatIsNoUtf8IsReplaced) {
  const TemporaryFolder folder;
  RunInfo info = full();
  info.command = "a\xff";
  write_run_info(folder.path(), info);
  EXPECT_EQ(read_run_info(folder.path()).command, "a\xef\xbf\xbd");
}

TEST(RunInfoFile, KeysOfLaterVersionsAreIgnored) {
  const TemporaryFolder folder;
  write_run_info(folder.path(), full());
  base::Json json = base::Json::parse(test::read_text(folder / "run.json"));
  json["colour"] = {1, 2};
  test::write_text(folder / "run.json", json.dump());
  EXPECT_EQ(read_run_info(folder.path()), full());
}

// The message after the name of the file, for a run.json with one key changed.
std::string refusal(const char* key, const base::Json& value) {
  const TemporaryFolder folder;
  write_run_info(folder.path(), full());
  base::Json json = base::Json::parse(test::read_text(folder / "run.json"));
  if (value.is_discarded()) {
    json.erase(key);
  } else {
    json[key] = value;
  }
  test::write_text(folder / "run.json", json.dump());
  const std::string message =
      message_of<RecordError>([&] { read_run_info(folder.path()); });
  const std::string start = "[run] " + (folder / "run.json").string() + ": ";
  EXPECT_EQ(message.find(start), 0U) << message;
  return message.substr(std::min(start.size(), message.size()));
}

TEST(RunInfo, ItsSubjectNamesTheModelUnlessItIsTheTasksOwn) {
  RunInfo info = full();
  EXPECT_EQ(subject_of(info), "cifar10, deit-tiny32-distilled");
  info.model = "vit";
  EXPECT_EQ(subject_of(info), "cifar10");
  info.model.reset();  // of before there were names
  EXPECT_EQ(subject_of(info), "cifar10");
  info.task = "sotu";
  info.model = "gpt";
  EXPECT_EQ(subject_of(info), "sotu");
}

TEST(RunInfoDamage, NamesTheKey) {
  EXPECT_EQ(refusal("state", "resting"),
            "\"state\" is \"resting\", which is no state");
  EXPECT_EQ(refusal("task", 3), "\"task\" is of type number, must be a string");
  EXPECT_EQ(refusal("seed", "1"),
            "\"seed\" is of type string, must be an integer");
  EXPECT_EQ(refusal("seed", 1.5),
            "\"seed\" is of type number, must be an integer");
  EXPECT_EQ(refusal("steps", -1),
            "\"steps\" is -1, must be from 0 to 9223372036854775807");
  EXPECT_EQ(refusal("threads", 4294967296),
            "\"threads\" is 4294967296, must be from 0 to 2147483647");
  EXPECT_EQ(refusal("peak_mb", base::Json()),
            "\"peak_mb\" is of type null, must be a number");
  EXPECT_EQ(refusal("loss", "low"),
            "\"loss\" is of type string, must be a number");
  EXPECT_EQ(refusal("path_costs", 3),
            "\"path_costs\" is of type number, must be a string");
  EXPECT_EQ(refusal("pixels", 3),
            "\"pixels\" is of type number, must be an object");
  EXPECT_EQ(refusal("pixels", {{"mean", {0.5}}, {"std", 1}}),
            "\"std\" is of type number, must be an array");
  EXPECT_EQ(refusal("pixels", {{"mean", {"a"}}, {"std", {0.5}}}),
            "\"mean\" is of type string, must be numbers");
  EXPECT_EQ(refusal("images", {{"channels", 3}, {"size", -1}, {"classes", 2}}),
            "\"size\" is -1, must be from 0 to 9223372036854775807");
  EXPECT_EQ(refusal("teacher", "runs/large"),
            "\"teacher\" is of type string, must be an object");
  EXPECT_EQ(refusal("teacher", {{"run", "a"}, {"model", 3}}),
            "\"model\" is of type number, must be a string");
  EXPECT_EQ(refusal("teacher", {{"run", "a"},
                                {"model", "vit"},
                                {"activation", "x"},
                                {"weights", "0"},
                                {"accuracy", "high"}}),
            "\"teacher\" has an accuracy that is of type string, must be a "
            "number");
  EXPECT_EQ(refusal("divergence", 3),
            "\"divergence\" is of type number, must be an object");
  EXPECT_EQ(refusal("divergence", base::Json::object()), "\"step\" is missing");
  EXPECT_EQ(refusal("format", 2),
            "\"format\" is 2, but this version of polyattn reads 1");
}

TEST(RunInfoDamage, EveryKeyIsNeededButTheOptionalOnes) {
  const TemporaryFolder folder;
  write_run_info(folder.path(), full());
  const base::Json json =
      base::Json::parse(test::read_text(folder / "run.json"));
  EXPECT_EQ(json.size(), 35U);
  const std::set<std::string> optional = {
      "model",    "variant",       "path_costs",  "blas",       "loss",
      "accuracy", "bits_per_byte", "split",       "divergence", "pixels",
      "images",   "teacher",       "kernel_bits", "tokenizer"};
  for (const auto& [key, value] : json.items()) {
    if (optional.contains(key)) continue;
    EXPECT_EQ(refusal(key.c_str(), base::Json(base::Json::value_t::discarded)),
              "\"" + key + "\" is missing");
  }
}

TEST(RunInfoDamage, OfTheWholeFile) {
  const TemporaryFolder folder;
  const std::string path = (folder / "run.json").string();
  const auto message = [&] {
    return message_of<RecordError>([&] { read_run_info(folder.path()); });
  };
  EXPECT_EQ(message(),
            "[run] cannot read " + path + ": No such file or directory");
  write_run_info(folder.path(), full());
  const std::string text = test::read_text(path);
  for (std::size_t size = 0; size + 2 < text.size(); size += 7) {
    test::write_text(path, text.substr(0, size));
    EXPECT_EQ(message().find("[run] " + path + ": no JSON at byte "), 0U);
  }
  test::write_text(path, "[]");
  EXPECT_EQ(message(), "[run] " + path + ": it is no JSON object");
  test::write_text(path, std::string(100000, '['));
  EXPECT_EQ(message(),
            "[run] " + path + ": values are nested more than 16 deep");
  test::write_text(path, std::string((1 << 20) + 1, ' '));
  EXPECT_EQ(message(),
            "[run] cannot read " + path + ": it has more than 1048576 bytes");
  EXPECT_EQ(message_of<RecordError>([&] {
              write_run_info(folder / "no", full());
            }).find("[run] cannot write "),
            0U);
}

}  // namespace run_info_test
}  // namespace polyattn::run
