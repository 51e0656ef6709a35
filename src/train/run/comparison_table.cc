// A comparison as a table for people, and as JSON for programs.
#include <fmt/format.h>

#include <cmath>

#include "base/text_table.h"
#include "train/run/comparison.h"

namespace polyattn::run {
namespace {

using Cells = std::vector<std::string>;

const char* name_of(Figure figure) {
  switch (figure) {
    case Figure::kAccuracy:
      return "accuracy";
    case Figure::kBitsPerByte:
      return "bits_per_byte";
    default:
      return "loss";
  }
}

const char* title_of(Figure figure) {
  switch (figure) {
    case Figure::kAccuracy:
      return "accuracy, %";
    case Figure::kBitsPerByte:
      return "bits per byte";
    default:
      return "loss";
  }
}

std::string sample_text(const base::Sample& sample, double factor,
                        int decimals) {
  if (sample.count == 0) return "-";
  const std::string mean =
      fmt::format("{:.{}f}", sample.mean * factor, decimals);
  if (sample.count == 1) return mean;
  return fmt::format("{} ± {:.{}f}", mean, sample.deviation * factor, decimals);
}

std::string time_text(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e9) return "-";
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60,
                     whole % 60);
}

// 0 stands for a norm that nobody recorded.
std::string norm_text(double norm) {
  return norm == 0 ? "-" : fmt::format("{:.3g}", norm);
}

std::string ratio_text(double norm, double tokens) {
  return norm == 0 || tokens <= 0
             ? "-"
             : fmt::format("{:.3g}", norm / std::sqrt(tokens));
}

// The titles, and below the cells of a row in the same order.
std::vector<base::Column> columns_of(Figure figure) {
  std::vector<base::Column> columns = {{"activation", base::Align::kLeft}};
  if (figure != Figure::kLoss) columns.push_back({title_of(figure)});
  for (const char* title : {"loss", "train time", "memory", "max ‖A‖", "/√N",
                            "max ‖A'‖", "/√N", "diverged", "unfinished"}) {
    columns.push_back({title});
  }
  return columns;
}

Cells cells_of(const Comparison& comparison, const ComparisonRow& row) {
  Cells cells = {row.activation};
  if (comparison.figure == Figure::kAccuracy) {
    cells.push_back(sample_text(row.figure, 100, 1));
  } else if (comparison.figure == Figure::kBitsPerByte) {
    cells.push_back(sample_text(row.figure, 1, 3));
  }
  const int all = row.finished + row.diverged + row.other;
  cells.push_back(sample_text(row.loss, 1, 3));
  cells.push_back(row.finished > 0 ? time_text(row.train_seconds) : "-");
  cells.push_back(row.peak_mb > 0 ? fmt::format("{:.0f} MB", row.peak_mb)
                                  : "-");
  cells.push_back(norm_text(row.max_weight_norm));
  cells.push_back(ratio_text(row.max_weight_norm, comparison.tokens));
  cells.push_back(norm_text(row.max_jacobian_norm));
  cells.push_back(ratio_text(row.max_jacobian_norm, comparison.tokens));
  cells.push_back(fmt::format("{}/{}", row.diverged, all));
  cells.push_back(row.other > 0 ? fmt::format("{}/{}", row.other, all) : "");
  return cells;
}

std::string markdown_line(const Cells& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

// Within a code span nothing but | and ` means anything.
std::string as_code(const std::string& text) {
  std::string code = "`";
  for (const char c : text) {
    if (c == '|') code += '\\';
    code += c == '`' ? '\'' : c;
  }
  return code + "`";
}

std::string notes(const Comparison& comparison) {
  std::string text =
      "± is the standard deviation over the seeds. Times and memory are those "
      "of training. ‖A‖ and ‖A'‖ are the largest Frobenius norms of an "
      "attention "
      "matrix and of its Jacobian, over layers, heads and recorded steps";
  if (comparison.tokens > 0) {
    text += fmt::format("; N = {:.0f}", comparison.tokens);
  }
  text +=
      ". Differences are taken seed by seed, and their intervals are "
      "Student's, "
      "each by itself: of twenty activations that are all equal, one is "
      "expected to look different.\n";
  return text;
}

base::Json sample_json(const base::Sample& sample) {
  if (sample.count == 0) return base::Json();
  return {{"mean", base::number(sample.mean)},
          {"deviation", base::number(sample.deviation)},
          {"count", sample.count}};
}

base::Json row_json(const ComparisonRow& row) {
  base::Json json;
  json["activation"] = row.activation;
  json["finished"] = row.finished;
  json["diverged"] = row.diverged;
  json["other"] = row.other;
  json["figure"] = sample_json(row.figure);
  json["loss"] = sample_json(row.loss);
  json["train_seconds"] = base::number(row.train_seconds);
  json["peak_mb"] = base::number(row.peak_mb);
  json["max_weight_norm"] = base::number(row.max_weight_norm);
  json["max_jacobian_norm"] = base::number(row.max_jacobian_norm);
  json["pairs"] = row.pairs;
  const auto if_pairs = [&](double value, int needed) {
    return row.pairs >= needed ? base::number(value) : base::Json();
  };
  json["paired_mean"] = if_pairs(row.paired_mean, 1);
  json["baseline_mean"] = if_pairs(row.baseline_mean, 1);
  json["difference"] = if_pairs(row.difference, 1);
  json["half_width"] = if_pairs(row.half_width, 2);
  return json;
}

}  // namespace

std::string comparison_table(const Comparison& comparison) {
  base::TextTable table(columns_of(comparison.figure));
  for (const ComparisonRow& row : comparison.rows) {
    table.add_row(cells_of(comparison, row));
  }
  return table.to_string();
}

std::string comparison_markdown(const Comparison& comparison) {
  Cells titles, rules;
  for (const base::Column& column : columns_of(comparison.figure)) {
    titles.push_back(column.title);
    rules.emplace_back(column.align == base::Align::kLeft ? "---" : "---:");
  }
  std::string text = verdict(comparison) + "\n\n";
  text += markdown_line(titles) + markdown_line(rules);
  for (const ComparisonRow& row : comparison.rows) {
    Cells cells = cells_of(comparison, row);
    cells.front() = as_code(row.activation);
    text += markdown_line(cells);
  }
  return text + "\n" + notes(comparison);
}

base::Json comparison_json(const Comparison& comparison) {
  base::Json json;
  json["task"] = comparison.task;
  json["figure"] = name_of(comparison.figure);
  json["tokens"] = base::number(comparison.tokens);
  json["test_count"] = comparison.test_count;
  json["baseline"] =
      comparison.rows.empty()
          ? base::Json()
          : base::Json(comparison.rows[comparison.baseline].activation);
  json["rows"] = base::Json::array();
  for (const ComparisonRow& row : comparison.rows) {
    json["rows"].push_back(row_json(row));
  }
  json["cautions"] = comparison.cautions;
  json["verdict"] = verdict(comparison);
  return json;
}

}  // namespace polyattn::run
