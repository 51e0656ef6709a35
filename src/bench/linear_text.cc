#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.h"
#include "bench/linear_report.h"

namespace polyattn::bench {
namespace {

using base::Align;
using base::Colour;
using base::coloured;
using base::TextTable;

// Wrong choices of the planner that are listed.
constexpr std::size_t kMostListed = 10;
constexpr double kTolerableLoss = 1.10;

std::string amount(const LinearRow& row, const std::optional<double>& value) {
  return value ? fmt::format("{:.2f} {}", *value, row.unit) : "";
}

std::string value_cell(const LinearRow& row) {
  if (!row.value) return "not measured";
  const base::Spread& s = *row.value;
  std::string text = fmt::format("{:.2f}", s.median);
  if (s.q1 != s.q3) text += fmt::format(" ({:.2f}–{:.2f})", s.q1, s.q3);
  return text + " " + row.value_unit;
}

std::string goal_cell(const LinearRow& row) {
  if (!row.goal) return "";
  return fmt::format("{} {:.2f} {}",
                     row.goal->bound == Bound::kAtLeast ? "≥" : "≤",
                     row.goal->value, row.value_unit);
}

std::string reached_mark(const LinearRow& row, bool colours) {
  if (!row.reached()) return "";
  const std::string text = *row.reached() ? "yes" : "NO";
  if (!colours) return text;
  return coloured(text, *row.reached() ? Colour::kGreen : Colour::kRed);
}

std::string figures_text(const std::vector<LinearRow>& rows, bool colours) {
  TextTable table({{"case (f32, E = D)", Align::kLeft},
                   {"threads"},
                   {"ours"},
                   {"rival"},
                   {"value (quartiles)", Align::kLeft},
                   {"goal", Align::kLeft},
                   {"reached", Align::kLeft},
                   {"rival is", Align::kLeft},
                   {"note", Align::kLeft}});
  for (const LinearRow& row : rows) {
    table.add_row({row.name, std::to_string(row.threads), amount(row, row.ours),
                   amount(row, row.rival), value_cell(row), goal_cell(row),
                   reached_mark(row, colours), row.rival_name, row.note});
  }
  return table.to_string();
}

std::string accuracy_text(const std::vector<AccuracyRow>& rows) {
  TextTable table({{"activation", Align::kLeft},
                   {"D"},
                   {"N"},
                   {"linear rms"},
                   {"linear max"},
                   {"dense rms"},
                   {"dense max"}});
  const auto number = [](double x) { return fmt::format("{:.1e}", x); };
  for (const AccuracyRow& row : rows) {
    table.add_row({row.activation, std::to_string(row.d), std::to_string(row.n),
                   number(row.linear.rms), number(row.linear.max),
                   number(row.dense.rms), number(row.dense.max)});
  }
  return "\nError against the reference in f64, over the root mean square of "
         "its output\n" +
         table.to_string();
}

std::string overflow_text(const std::vector<OverflowRow>& rows) {
  TextTable table({{"activation", Align::kLeft},
                   {"D"},
                   {"multiplied by a", Align::kLeft},
                   {"linear up to a ="},
                   {"dense up to a ="}});
  const auto limit = [](const std::optional<double>& x) {
    return x ? fmt::format("{:.2g}", *x) : std::string("no limit found");
  };
  for (const OverflowRow& row : rows) {
    table.add_row({row.activation, std::to_string(row.d), row.scaled,
                   limit(row.linear), limit(row.dense)});
  }
  return "\nHow large standard normal q and k may be made before f32 overflows "
         "(N = 64)\n" +
         table.to_string();
}

std::string planner_text(std::vector<PlannerRow> rows) {
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.loss > b.loss; });
  const auto fine = std::find_if(rows.begin(), rows.end(), [](const auto& r) {
    return r.loss <= kTolerableLoss;
  });
  const auto wrong = static_cast<std::size_t>(fine - rows.begin());
  if (wrong == 0) return "";
  rows.resize(std::min(wrong, kMostListed));
  TextTable table({{"shape", Align::kLeft},
                   {"chosen", Align::kLeft},
                   {"dense ms"},
                   {"predicted"},
                   {"linear ms"},
                   {"predicted"},
                   {"loss"}});
  const auto ms = [](double x) { return fmt::format("{:.3f}", x); };
  for (const PlannerRow& row : rows) {
    table.add_row({describe(row.shape), name_of(row.chosen), ms(row.dense_ms),
                   ms(row.predicted_dense_ms), ms(row.linear_ms),
                   ms(row.predicted_linear_ms),
                   fmt::format("{:.2f} ×", row.loss)});
  }
  return fmt::format("\nWorst choices of the planner, {} of {} above {:.2f}\n",
                     rows.size(), wrong, kTolerableLoss) +
         table.to_string();
}

std::string goals_text(const std::vector<LinearRow>& rows) {
  int goals = 0, misses = 0;
  std::string missed, absent;
  for (const LinearRow& row : rows) {
    if (!row.goal) continue;
    const std::string line = fmt::format(
        "  {}, threads: {}: {}, must be {}\n", row.name, row.threads,
        row.value ? value_cell(row) : row.note, goal_cell(row));
    if (!row.value) {
      absent += line;
      continue;
    }
    ++goals;
    if (*row.reached()) continue;
    ++misses;
    missed += line;
  }
  std::string text;
  if (goals > 0 && misses == 0) {
    text = fmt::format("\nAll {} goals are reached.\n", goals);
  } else if (misses > 0) {
    text = fmt::format("\nMissed {} of {} goals:\n{}", misses, goals, missed);
  }
  return absent.empty() ? text : text + "\nNot measured:\n" + absent;
}

}  // namespace

std::optional<bool> LinearRow::reached() const {
  if (!value || !goal) return std::nullopt;
  return reaches(*goal, value->median);
}

std::string linear_text(const LinearReport& report, bool colours) {
  std::string text = figures_text(report.rows, colours);
  if (!report.accuracy.empty()) text += accuracy_text(report.accuracy);
  if (!report.overflow.empty()) text += overflow_text(report.overflow);
  return text + planner_text(report.planner) + goals_text(report.rows);
}

}  // namespace polyattn::bench
