#include "report/run_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <vector>

#include "base/json_text.h"
#include "report/text.h"

namespace polyattn::report {
namespace {

using base::Json;
using run::RunInfo;

// Everything but the config and the curves.
constexpr std::size_t kFactsBytes = 1000;
// A number and its comma.
constexpr std::size_t kNumberBytes = 8;
constexpr std::size_t kMaxTextBytes = 2000;
// So few points are kept in any case.
constexpr std::size_t kLeastPoints = 16;

// Parts of curves as JSON text.
class CurvesText {
 public:
  CurvesText(const Rows& rows, std::vector<std::size_t> kept)
      : rows_(rows), kept_(std::move(kept)) {}

  std::size_t size() const { return kept_.size(); }

  std::string steps() const {
    std::string text = "[";
    for (const std::size_t row : kept_) {
      fmt::format_to(std::back_inserter(text), "{}{}",
                     text.size() > 1 ? "," : "", rows_.step(row));
    }
    return text + "]";
  }

  std::string column(std::size_t column) const {
    std::string text = "[";
    for (const std::size_t row : kept_) {
      if (text.size() > 1) text += ',';
      append_number(text, rows_.value(row, column));
    }
    return text + "]";
  }

 private:
  const Rows& rows_;
  std::vector<std::size_t> kept_;
};

// An object, member by member, of which the values are JSON text.
class ObjectText {
 public:
  ObjectText& add(const char* key, std::string_view value) {
    fmt::format_to(std::back_inserter(text_), "{}\"{}\":{}",
                   text_.size() > 1 ? "," : "", key, value);
    return *this;
  }
  std::string text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

std::size_t points_for(std::size_t bytes, std::size_t width) {
  return std::clamp(bytes / (kNumberBytes * (width + 1)), kLeastPoints,
                    kMaxPoints);
}

std::string eval_text(const RunSeries& series, std::size_t bytes) {
  const ThinTable& table = series.eval();
  const std::vector<std::string>& terms = series.terms();
  const bool errors = table.total() > 0 && series.has_errors();
  const std::size_t width =
      kEvalErrors + (errors ? kEvalTerms - kEvalErrors : 0) + terms.size();
  const CurvesText curves(table.rows(),
                          table.thinned_to(points_for(bytes, width)));
  ObjectText object;
  object.add("points", std::to_string(table.total()));
  object.add("step", curves.steps()).add("loss", curves.column(kEvalLoss));
  if (table.total() > 0 && series.has_accuracy()) {
    object.add("accuracy", curves.column(kEvalAccuracy));
  }
  if (table.total() > 0 && series.has_bits()) {
    object.add("bits_per_byte", curves.column(kEvalBits));
  }
  if (errors) {
    object.add("relative_l1", curves.column(kEvalRelativeL1));
    object.add("relative_l2", curves.column(kEvalRelativeL2));
  }
  if (!terms.empty()) {
    ObjectText columns;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      columns.add(terms[i].c_str(), curves.column(kEvalTerms + i));
    }
    object.add("terms", columns.text());
  }
  return object.text();
}

std::string layer_text(const CurvesText& curves, const NormsLayout& layout,
                       const LayerFacts& facts, std::size_t layer) {
  std::string heads = "[";
  for (std::size_t i = 0; i < layout.heads(layer); ++i) {
    const std::size_t column = layout.head_column(layer, i);
    heads += i == 0 ? "" : ",";
    heads += ObjectText()
                 .add("weight_mean", curves.column(column))
                 .add("weight_max", curves.column(column + 1))
                 .add("jacobian_mean", curves.column(column + 2))
                 .add("jacobian_max", curves.column(column + 3))
                 .add("max_abs_score", curves.column(column + 4))
                 .text();
  }
  const std::size_t column = layout.layer_column(layer);
  ObjectText object;
  if (!facts.kind.empty()) object.add("kind", Json(facts.kind).dump());
  if (facts.stage >= 0) object.add("stage", std::to_string(facts.stage));
  if (facts.tokens > 0) object.add("tokens", Json(facts.tokens).dump());
  return object.add("grad_norm", curves.column(column))
      .add("weight_norm", curves.column(column + 1))
      .add("heads", heads + "]")
      .text();
}

std::string norms_text(const RunSeries& series, std::size_t bytes) {
  if (!series.norms()) {
    return R"({"points":0,"step":[],"tokens":[],"layers":[]})";
  }
  const auto& [layout, facts, table] = *series.norms();
  // A model of many heads may leave room for few records; the first and the
  // last are always there.
  const std::size_t limit = std::clamp<std::size_t>(
      bytes / (kNumberBytes * layout.width()), 2, kMaxPoints);
  const CurvesText curves(table.rows(), table.thinned_to(limit));
  std::string layers = "[";
  for (std::size_t i = 0; i < layout.layers(); ++i) {
    layers += (i == 0 ? "" : ",") + layer_text(curves, layout, facts[i], i);
  }
  return ObjectText()
      .add("points", std::to_string(table.total()))
      .add("step", curves.steps())
      .add("tokens", curves.column(NormsLayout::kTokens))
      .add("layers", layers + "]")
      .text();
}

// Up to a '#' that is in no string, and the spaces before it.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  std::size_t end = 0;
  for (; end < line.size(); ++end) {
    const char c = line[end];
    if (quote == '"' && c == '\\') {
      ++end;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      break;
    }
  }
  line = line.substr(0, end);
  return line.substr(0, line.find_last_not_of(" \t\r") + 1);
}

// Without the comments, if it is too long with them; else none of it.
std::string config_within(const std::string& config, std::size_t bytes) {
  if (config.size() <= bytes) return config;
  std::string text = "# without its comments\n";
  std::string_view rest = config;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = without_comment(rest.substr(0, end));
    if (!line.empty()) {
      text += line;
      text += '\n';
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text.size() <= bytes ? text : "";
}

Json facts_json(const RunFacts& facts, std::int64_t step) {
  const RunInfo& info = facts.info;
  const auto text = [](const std::string& value) {
    return cut_text(value, kMaxTextBytes);
  };
  Json json;
  json["name"] = facts.name;
  json["task"] = text(run::subject_of(info));
  json["activation"] = text(info.activation);
  json["variant"] = text(info.variant.value_or(""));
  json["seed"] = info.seed;
  json["state"] = run::name_of(info.state);
  json["step"] = step;
  json["steps"] = info.steps;
  json["parameters"] = info.parameters;
  json["version"] = text(info.version);
  json["command"] = text(info.command);
  json["instruction_set"] = text(info.instruction_set);
  json["threads"] = info.threads;
  json["machine"] = text(info.machine);
  json["started"] = text(info.started);
  json["updated"] = facts.updated;
  json["train_seconds"] = base::number(info.train_seconds);
  json["eval_seconds"] = base::number(info.eval_seconds);
  json["peak_mb"] = base::number(info.peak_mb);
  json.update(
      {{"loss", nullptr}, {"accuracy", nullptr}, {"bits_per_byte", nullptr}});
  if (info.result) json.update(run::evaluation_json(*info.result));
  json["tokens"] = info.tokens;
  json["test_count"] = info.test_count;
  json["model"] = text(info.model.value_or(""));
  json["teacher"] = Json();
  if (info.teacher) {
    json["teacher"] = {{"run", text(info.teacher->run)},
                       {"model", text(info.teacher->model)},
                       {"activation", text(info.teacher->activation)},
                       {"accuracy", nullptr}};
    if (info.teacher->accuracy) {
      json["teacher"]["accuracy"] = *info.teacher->accuracy;
    }
  }
  json["split"] = info.split == run::kValidation ? run::kValidation : "test";
  json["max_weight_norm"] = base::number(info.max_weight_norm);
  json["max_jacobian_norm"] = base::number(info.max_jacobian_norm);
  json["divergence"] = Json();
  if (info.divergence) {
    json["divergence"] = {{"step", info.divergence->step},
                          {"what", text(info.divergence->what)}};
  }
  if (facts.lengths) json["lengths"] = run::lengths_json(*facts.lengths);
  return json;
}

}  // namespace

std::int64_t shown_step(const run::RunInfo& info, const RunSeries& series) {
  return info.state == run::RunState::kRunning
             ? std::max(info.step, series.last_step())
             : info.step;
}

RunBudget run_budget(std::size_t bytes, std::size_t runs) {
  const std::size_t share = bytes / std::max<std::size_t>(runs, 1);
  const std::size_t left = share > kFactsBytes ? share - kFactsBytes : 0;
  RunBudget budget;
  budget.config = left / 3;
  // Configs are some 7 KB; what they leave is for the curves.
  const std::size_t curves = left - std::min<std::size_t>(left / 3, 7000);
  budget.train = curves / 2;
  budget.norms = curves * 2 / 5;
  budget.eval = curves / 10;
  return budget;
}

std::string run_json(const RunFacts& facts, const RunSeries& series,
                     const RunBudget& budget, std::string_view maps,
                     std::string_view solution) {
  Json json = facts_json(facts, shown_step(facts.info, series));
  json["config"] = config_within(facts.config, budget.config);
  const ThinTable& train = series.train();
  const CurvesText curves(
      train.rows(), train.thinned_to(points_for(budget.train, kTrainWidth)));
  std::string text = base::printed(json);
  text.pop_back();  // its brace
  text += ",\"train\":";
  text += ObjectText()
              .add("step", curves.steps())
              .add("loss", curves.column(kTrainLoss))
              .add("lr", curves.column(kTrainRate))
              .add("grad_norm", curves.column(kTrainGradNorm))
              .add("items_per_second", curves.column(kTrainItems))
              .add("seconds", curves.column(kTrainSeconds))
              .text();
  text += ",\"eval\":" + eval_text(series, budget.eval);
  // The start counts as a record of norms, and goes if it leaves them no room.
  const std::string& start = series.start();
  const bool has_start = !start.empty() && start.size() <= budget.norms / 2;
  text += ",\"norms\":" +
          norms_text(series, budget.norms - (has_start ? start.size() : 0));
  if (has_start) text += ",\"start\":" + start;
  if (solution != "null") text += fmt::format(",\"solution\":{}", solution);
  text += fmt::format(",\"points\":{},\"shown\":{},\"maps\":{}}}",
                      train.total(), curves.size(), maps);
  return text;
}

}  // namespace polyattn::report
