// Run folders written by hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "report/find_runs.h"
#include "report/run_files.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "train/run/config.h"
#include "train/run/records.h"

namespace polyattn::report::test {

using polyattn::test::message_of;
using polyattn::test::read_text;
using polyattn::test::TemporaryFolder;
using polyattn::test::write_text;

inline run::RunInfo finished_run(const std::string& activation,
                                 std::int64_t seed, double accuracy) {
  run::RunInfo info;
  info.state = run::RunState::kFinished;
  info.task = "fashion-mnist";
  info.activation = activation;
  info.seed = seed;
  info.step = info.steps = 100;
  info.parameters = 72202;
  info.version = "0.1.0";
  info.command = "polyattn compare";
  info.instruction_set = "avx2";
  info.threads = 2;
  info.machine = "EPYC, 2 cores";
  info.started = "2026-11-16T09:44:59Z";
  info.train_seconds = 30;
  info.eval_seconds = 2;
  info.peak_mb = 400;
  info.result = {.loss = 1 - accuracy, .accuracy = accuracy};
  info.tokens = 49;
  info.test_count = 10000;
  info.max_weight_norm = 16;
  info.max_jacobian_norm = 4;
  return info;
}

inline std::string train_line(std::int64_t step, double loss) {
  return base::json_line({{"kind", "train"},
                          {"step", step},
                          {"epoch", 0},
                          {"loss", loss},
                          {"lr", 0.001},
                          {"grad_norm", 0.5},
                          {"seconds", 0.25 * static_cast<double>(step)},
                          {"items_per_second", 1000.0},
                          {"wait_share", 0.0}});
}

inline std::string eval_line(std::int64_t step, double loss, double accuracy) {
  return base::json_line({{"kind", "eval"},
                          {"step", step},
                          {"epoch", 0},
                          {"loss", loss},
                          {"accuracy", accuracy},
                          {"seconds", 1.0}});
}

// `value` is where it is looked for: weight_max of the last head.
inline std::string norms_line(std::int64_t step, double value,
                              std::size_t layers = 2, std::size_t heads = 2) {
  const auto lists = [&](double number) {
    return base::Json(std::vector(layers, std::vector(heads, number)));
  };
  base::Json record = {{"kind", "norms"}, {"step", step}, {"tokens", 49}};
  for (const char* key : {"weight_mean", "weight_max", "jacobian_mean",
                          "jacobian_max", "max_abs_score"}) {
    record[key] = lists(1.5);
  }
  record["weight_max"][layers - 1][heads - 1] = value;
  record["grad_norm"] = std::vector(layers, 0.25);
  record["weight_norm"] = std::vector(layers, 23.5);
  return base::json_line(record);
}

// `value` is where it is looked for: weight_before of the last head.
inline std::string start_line(const base::Json& value, std::size_t layers = 2,
                              std::size_t heads = 2) {
  const auto lists = [&](double number) {
    return base::Json(std::vector(layers, std::vector(heads, number)));
  };
  base::Json record = {{"kind", "start"},
                       {"step", 0},
                       {"factor", 0.5},
                       {"gain", lists(0.25)},
                       {"weight_before", lists(8)},
                       {"weight", lists(1)},
                       {"softmax", lists(2)}};
  record["weight_before"][layers - 1][heads - 1] = value;
  return base::json_line(record);
}

// run.json, config.toml and metrics.jsonl.
inline void write_run(const std::filesystem::path& folder,
                      const run::RunInfo& info, const std::string& metrics) {
  std::filesystem::create_directories(folder);
  run::write_run_info(folder, info);
  write_text(folder / "config.toml",
             run::config_text(run::default_config("fashion-mnist")));
  write_text(folder / "metrics.jsonl", metrics);
}

// A run with few records.
inline void write_small_run(const std::filesystem::path& folder,
                            const run::RunInfo& info) {
  write_run(folder, info,
            train_line(20, 2) + norms_line(50, 3) + train_line(100, 1) +
                eval_line(100, 1, 0.5));
}

// Four pixels, one channel, patches of 1: four tokens; 16 weights a map.
inline base::Json small_maps(int inputs = 1, int heads = 1) {
  base::Json json = {{"inputs", base::Json::array()},
                     {"class_token", false},
                     {"rows", 4},
                     {"columns", 4},
                     {"maps", base::Json::array()}};
  for (int i = 0; i < inputs; ++i) {
    json["inputs"].push_back({{"label", "boot " + std::to_string(i)},
                              {"kind", "image"},
                              {"image",
                               {{"width", 2},
                                {"height", 2},
                                {"channels", 1},
                                {"patch", 1},
                                {"pixels", "AAECAw=="}}}});
    for (int head = 0; head < heads; ++head) {
      json["maps"].push_back({{"input", i},
                              {"layer", 0},
                              {"head", head},
                              {"scale", 0.5},
                              {"values", "AAECAwQFBgcICQoLDA0ODw=="}});
    }
  }
  return json;
}

// maps.json of one image of 4 x 4 pixels in patches of 2: a layer of windows of
// one token, whose map is 2 x 2 and shifted by nothing, one of two channels,
// one of a class token.
inline base::Json layered_maps() {
  base::Json json = {{"inputs", base::Json::array()},
                     {"layers", base::Json::array()},
                     {"maps", base::Json::array()}};
  json["inputs"].push_back({{"label", "boot"},
                            {"kind", "image"},
                            {"image",
                             {{"width", 4},
                              {"height", 4},
                              {"channels", 1},
                              {"patch", 2},
                              {"pixels", "AAECAwQFBgcICQoLDA0ODw=="}}}});
  json["layers"].push_back({{"layer", 0},
                            {"kind", "window"},
                            {"stage", 0},
                            {"rows", 1},
                            {"columns", 1},
                            {"patch", 2},
                            {"windows",
                             {{"height", 2},
                              {"width", 2},
                              {"side", 1},
                              {"down", 0},
                              {"right", 0}}}});
  json["layers"].push_back({{"layer", 1},
                            {"kind", "channel"},
                            {"stage", 0},
                            {"rows", 2},
                            {"columns", 2}});
  json["layers"].push_back({{"layer", 3},
                            {"kind", "class"},
                            {"stage", 1},
                            {"rows", 1},
                            {"columns", 5},
                            {"patch", 2},
                            {"prefix", 1}});
  const auto add = [&](int layer, const char* values) -> base::Json& {
    json["maps"].push_back({{"input", 0},
                            {"layer", layer},
                            {"head", 0},
                            {"scale", 0.5},
                            {"values", values}});
    return json["maps"].back();
  };
  add(0, "fw==")["window"] = 3;
  add(0, "fw==")["window"] = 0;
  add(1, "AAECAw==");
  add(3, "AAECAwQ=");
  return json;
}

}  // namespace polyattn::report::test
