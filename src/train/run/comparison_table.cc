// A comparison as a table for people, and as JSON for programs.
#include <fmt/format.h>

#include <cmath>

#include "base/text_table.h"
#include "train/run/comparison.h"
#include "train/run/figure_text.h"

namespace polyattn::run {
namespace {

using Cells = std::vector<std::string>;

const char* title_of(Figure figure) {
  switch (figure) {
    case Figure::kAccuracy:
      return "accuracy, %";
    case Figure::kBitsPerByte:
      return "bits per byte";
    case Figure::kRelativeL2:
      return "relative L2";
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

// Of an equation, which a good solution takes to a thousandth and less.
std::string small_loss_text(const base::Sample& loss) {
  if (loss.count == 0) return "-";
  const std::string mean = fmt::format("{:.2g}", loss.mean);
  if (loss.count == 1) return mean;
  return fmt::format("{} ± {:.1g}", mean, loss.deviation);
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

// "-0.3 (-0.7 to +0.1)"; the baseline has none.
std::string difference_cell(const Comparison& comparison,
                            const ComparisonRow& row) {
  if (&row == &comparison.rows[comparison.baseline]) return "";
  if (row.difference.pairs == 0) return "-";
  const FigureStyle style = style_of(comparison.figure);
  const std::string difference = signed_text(row.difference, style);
  if (!row.difference.half_width) return difference;
  return fmt::format("{} ({})", difference,
                     interval_text(row.difference, style));
}

// The titles, and below the cells of a row in the same order.
std::vector<base::Column> columns_of(Figure figure) {
  std::vector<base::Column> columns = {{"activation", base::Align::kLeft}};
  if (figure != Figure::kLoss) columns.push_back({title_of(figure)});
  columns.push_back({"difference"});
  if (figure == Figure::kRelativeL2) columns.push_back({"relative L1"});
  for (const char* title : {"loss", "train time", "memory", "max ‖A‖", "/√N",
                            "max ‖A'‖", "/√N", "diverged", "unfinished"}) {
    columns.push_back({title});
  }
  return columns;
}

std::string label_of(const ComparisonRow& row) {
  return row.setting.empty() ? row.name()
                             : fmt::format("{} ({})", row.name(), row.setting);
}

Cells cells_of(const Comparison& comparison, const ComparisonRow& row) {
  Cells cells = {label_of(row)};
  if (comparison.figure == Figure::kAccuracy) {
    cells.push_back(sample_text(row.figure, 100, 1));
  } else if (comparison.figure == Figure::kBitsPerByte) {
    cells.push_back(sample_text(row.figure, 1, 3));
  } else if (comparison.figure == Figure::kRelativeL2) {
    cells.push_back(sample_text(row.figure, 1, 4));
  }
  const int all = row.finished + row.diverged + row.other;
  cells.push_back(difference_cell(comparison, row));
  if (comparison.figure == Figure::kRelativeL2) {
    cells.push_back(sample_text(row.relative_l1, 1, 4));
    cells.push_back(small_loss_text(row.loss));
  } else {
    cells.push_back(sample_text(row.loss, 1, 3));
  }
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
  text += ". Differences are those to the baseline, taken seed by seed";
  const std::string note = interval_note(comparison);
  if (!note.empty()) text += fmt::format(", with {}", note);
  return text + ".\n";
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
  if (!row.variant.empty()) json["variant"] = row.variant;
  if (!row.setting.empty()) json["setting"] = row.setting;
  json["finished"] = row.finished;
  json["diverged"] = row.diverged;
  json["other"] = row.other;
  json["figure"] = sample_json(row.figure);
  json["loss"] = sample_json(row.loss);
  if (row.relative_l1.count > 0)
    json["relative_l1"] = sample_json(row.relative_l1);
  json["train_seconds"] = base::number(row.train_seconds);
  json["peak_mb"] = base::number(row.peak_mb);
  json["max_weight_norm"] = base::number(row.max_weight_norm);
  json["max_jacobian_norm"] = base::number(row.max_jacobian_norm);
  const Difference& difference = row.difference;
  json["pairs"] = difference.pairs;
  const auto if_paired = [&](double value) {
    return difference.pairs > 0 ? base::number(value) : base::Json();
  };
  json["paired_mean"] = if_paired(row.paired_mean);
  json["baseline_mean"] = if_paired(row.baseline_mean);
  json["difference"] = if_paired(difference.mean);
  json["half_width"] = difference.half_width
                           ? base::number(*difference.half_width)
                           : base::Json();
  json["pooled"] = difference.pooled;
  return json;
}

base::Json intervals_json(const Comparison& comparison) {
  const IntervalBasis& basis = comparison.basis;
  if (basis.intervals == 0) return base::Json();
  const double size = style_of(comparison.figure).worth_telling;
  const auto seeds = seeds_to_tell(size, basis);
  return {{"note", interval_note(comparison)},
          {"count", basis.intervals},
          {"pooled", basis.pooled},
          {"degrees", basis.degrees},
          {"deviation", base::number(std::sqrt(basis.variance))},
          {"tell", size},
          {"seeds_to_tell", seeds ? base::Json(*seeds) : base::Json()}};
}

}  // namespace

const char* name_of(Figure figure) {
  switch (figure) {
    case Figure::kAccuracy:
      return "accuracy";
    case Figure::kBitsPerByte:
      return "bits_per_byte";
    case Figure::kRelativeL2:
      return "relative_l2";
    default:
      return "loss";
  }
}

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
    cells.front() = as_code(label_of(row));
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
  json["split"] = comparison.validation ? kValidation : "test";
  json["baseline"] =
      comparison.rows.empty()
          ? base::Json()
          : base::Json(comparison.rows[comparison.baseline].name());
  json["intervals"] = intervals_json(comparison);
  json["rows"] = base::Json::array();
  for (const ComparisonRow& row : comparison.rows) {
    json["rows"].push_back(row_json(row));
  }
  json["cautions"] = comparison.cautions;
  json["verdict"] = verdict(comparison);
  return json;
}

}  // namespace polyattn::run
