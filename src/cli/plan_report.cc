#include "cli/plan_report.h"

#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

#include "base/program.h"
#include "base/text_table.h"
#include "cli/program.h"

namespace polyattn::cli {
namespace {

using Json = nlohmann::ordered_json;

PathEstimate estimate_at(const PlanQuestion& question, std::int64_t length,
                         Direction direction) {
  PlanShape s = question.shape;
  s.n = length;
  if (question.keys_follow) s.m = length;
  const auto shape = [&](std::int64_t heads, std::int64_t rows,
                         std::int64_t width) {
    const Extents size = {s.b, heads, rows, width};
    return ConstTensor{nullptr, DType::kF32, size, contiguous_strides(size)};
  };
  return estimate_paths(
      {.q = shape(s.h, s.n, s.d),
       .k = shape(s.g, s.m, s.d),
       .v = shape(s.g, s.m, s.e)},
      {.activation = s.activation, .causal = s.causal, .window = s.window},
      direction);
}

bool linear_wins(const PlanQuestion& question, std::int64_t length,
                 Direction direction) {
  const PathEstimate e = estimate_at(question, length, direction);
  return e.obstacle.empty() && e.linear_seconds < e.dense_seconds;
}

std::string wish_for_path() {
  const char* text = std::getenv("POLYATTN_PLAN");
  return text == nullptr ? "" : text;
}

// The file that the costs in use came from; empty if they came with polyattn.
std::string kept_costs() {
  return read_path_costs_file() == path_costs() ? path_costs_file() : "";
}

std::string plan_time(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

std::string plan_bytes(std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return size < 1e6 ? fmt::format("{:.1f} kB", size / 1e3)
                    : fmt::format("{:.1f} MB", size / 1e6);
}

std::string plan_heading(const PlanShape& c) {
  std::string text =
      fmt::format("{}, N = {}, M = {}, D = {}, E = {}, B = {}, ",
                  c.activation.to_string(), c.n, c.m, c.d, c.e, c.b);
  text += c.g == c.h ? fmt::format("H = {}", c.h)
                     : fmt::format("H = {}, G = {}", c.h, c.g);
  if (c.causal != Causal::kNone)
    text += fmt::format(", causal from the {}", name_of(c.causal));
  const auto limit = [](std::int64_t keys) {
    return keys < 0 ? std::string("all") : std::to_string(keys);
  };
  if (c.window.left >= 0 || (c.window.right >= 0 && c.causal == Causal::kNone))
    text += fmt::format(", window of {} keys before", limit(c.window.left)) +
            (c.causal == Causal::kNone
                 ? fmt::format(" and {} behind", limit(c.window.right))
                 : "");
  return text + "\n";
}

std::string crossover_cell(const PlanAnswer& answer) {
  if (!answer.estimate.obstacle.empty()) return "";
  if (answer.crossover) return fmt::format("N = {}", *answer.crossover);
  return fmt::format("no N up to {}", kLongestPlanned);
}

std::vector<std::string> plan_row(const PlanAnswer& answer) {
  const PathEstimate& e = answer.estimate;
  const bool linear = e.obstacle.empty();
  return {name_of(answer.direction),
          linear ? std::to_string(e.features) : "",
          linear ? plan_bytes(e.state_bytes) : "",
          plan_time(e.dense_seconds),
          linear ? plan_time(e.linear_seconds) : "",
          name_of(e.path),
          crossover_cell(answer)};
}

std::string reasons_text(const std::vector<PlanAnswer>& answers) {
  std::string text;
  for (const PlanAnswer& answer : answers) {
    text += fmt::format("{} is {}: {}.\n", name_of(answer.direction),
                        name_of(answer.estimate.path), answer.estimate.reason);
  }
  return text;
}

std::string sources_text() {
  const std::string file = kept_costs();
  const std::string wish = wish_for_path();
  return fmt::format(
      "Times are predictions for one thread and f32; a state is that of one "
      "sequence and\nkey head. They follow from costs that {}.\n"
      "`polyattn bench calibrate` measures those of this machine.\n"
      "POLYATTN_PLAN=dense, linear or auto overrides the choice; {}.\n",
      file.empty() ? "come with polyattn" : "are kept in\n  " + file,
      wish.empty() ? "it is not set" : "now it is " + wish);
}

Json answer_json(const PlanAnswer& answer) {
  const PathEstimate& e = answer.estimate;
  const bool linear = e.obstacle.empty();
  const auto of_linear = [&](const Json& value) {
    return linear ? value : Json();
  };
  return {{"direction", name_of(answer.direction)},
          {"path", name_of(e.path)},
          {"reason", e.reason},
          {"obstacle", linear ? Json() : Json(e.obstacle)},
          {"features", of_linear(e.features)},
          {"state_bytes", of_linear(e.state_bytes)},
          {"dense_ms", e.dense_seconds * 1e3},
          {"linear_ms", of_linear(e.linear_seconds * 1e3)},
          {"crossover_N", answer.crossover ? Json(*answer.crossover) : Json()}};
}

}  // namespace

const char* name_of(Direction direction) {
  return direction == Direction::kForward ? "forward" : "backward";
}

std::optional<std::int64_t> crossover_of(const PlanQuestion& question,
                                         Direction direction) {
  std::int64_t high = 1;
  while (!linear_wins(question, high, direction)) {
    if (high >= kLongestPlanned) return std::nullopt;
    high *= 2;
  }
  std::int64_t low = high / 2;  // dense wins there, or there is nothing to do
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (linear_wins(question, middle, direction) ? high : low) = middle;
  }
  return high;
}

std::vector<PlanAnswer> answer_plan(const PlanQuestion& question) {
  std::vector<PlanAnswer> answers;
  try {
    for (const Direction direction : question.directions) {
      PlanAnswer answer{direction, {}, {}};
      answer.estimate = estimate_at(question, question.shape.n, direction);
      if (answer.estimate.obstacle.empty()) {
        answer.crossover = crossover_of(question, direction);
      }
      answers.push_back(answer);
    }
  } catch (const std::invalid_argument& error) {
    throw base::UsageError(error.what());
  }
  return answers;
}

std::string plan_text(const PlanQuestion& question,
                      const std::vector<PlanAnswer>& answers) {
  base::TextTable table({{"", base::Align::kLeft},
                         {"features"},
                         {"state"},
                         {"dense"},
                         {"linear"},
                         {"chosen", base::Align::kLeft},
                         {"linear is faster from", base::Align::kLeft}});
  for (const PlanAnswer& answer : answers) table.add_row(plan_row(answer));
  return plan_heading(question.shape) + "\n" + table.to_string() + "\n" +
         reasons_text(answers) + "\n" + sources_text();
}

Json plan_json(const PlanQuestion& question,
               const std::vector<PlanAnswer>& answers) {
  const PlanShape& c = question.shape;
  const std::string file = kept_costs(), wish = wish_for_path();
  Json json{{"activation", c.activation.to_string()},
            {"B", c.b},
            {"H", c.h},
            {"G", c.g},
            {"N", c.n},
            {"M", c.m},
            {"D", c.d},
            {"E", c.e},
            {"causal", name_of(c.causal)},
            {"window", c.window == Window{}
                           ? Json()
                           : Json::array({c.window.left, c.window.right})},
            {"dtype", polyattn::name_of(DType::kF32)},
            {"target", checked_target()},
            {"costs_file", file.empty() ? Json() : Json(file)},
            {"polyattn_plan", wish.empty() ? Json() : Json(wish)}};
  json["directions"] = Json::array();
  for (const PlanAnswer& answer : answers) {
    json["directions"].push_back(answer_json(answer));
  }
  return json;
}

}  // namespace polyattn::cli
