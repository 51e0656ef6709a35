#include "bench/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text_table.h"

namespace polyattn::bench {
namespace {

using base::Align;
using base::Colour;
using base::coloured;
using base::TextTable;

std::string unit_of(const Row& row) {
  switch (row.measure) {
    case Measure::kSgemmRatio:
      return "× sgemm";
    case Measure::kTimeRatio:
      return "× the time";
    case Measure::kSpeedup:
      return row.unit == "MB" ? "× less" : "× as fast";
    case Measure::kMegabytes:
      return "MB";
    case Measure::kGrowth:
      return "= g of N^g";
  }
  return "";
}

std::string amount(const Row& row, const std::optional<base::Spread>& spread) {
  if (!spread) return "";
  if (row.items > 0) {
    return fmt::format("{:.0f} {}/s", 1e3 * row.items / spread->median,
                       row.item_name);
  }
  return fmt::format("{:.2f} {}", spread->median, row.unit);
}

std::string reached_cell(const Row& row, bool colours) {
  if (!row.reached()) return "";
  const std::string text = *row.reached() ? "yes" : "NO";
  if (!colours) return text;
  return coloured(text, *row.reached() ? Colour::kGreen : Colour::kRed);
}

std::string lines_text(const std::vector<std::string>& lines) {
  return fmt::format("  {}\n", fmt::join(lines, "\n  "));
}

}  // namespace

std::string threads_text(int threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

std::string format_value(const Row& row) {
  if (!row.value) return "not measured";
  const auto& [median, q1, q3] = *row.value;
  std::string text = fmt::format("{:.2f}", median);
  if (q1 != q3) text += fmt::format(" ({:.2f}–{:.2f})", q1, q3);
  return text + " " + unit_of(row);
}

std::string format_goal(const Row& row) {
  if (!row.goal) return "";
  const char* bound = row.goal->bound == Bound::kAtLeast ? "≥" : "≤";
  return row.measure == Measure::kMegabytes
             ? fmt::format("{} {:.0f} MB", bound, row.goal->value)
             : fmt::format("{} {:.2f}", bound, row.goal->value);
}

std::string table_text(const std::vector<Row>& rows, bool colours) {
  TextTable table({{"case (f32 unless named)", Align::kLeft},
                   {"threads"},
                   {"ours"},
                   {"Gflop/s"},
                   {"baseline"},
                   {"median (quartiles)", Align::kLeft},
                   {"goal", Align::kLeft},
                   {"reached", Align::kLeft},
                   {"extra MB"},
                   {"speed-up"},
                   {"baseline is", Align::kLeft},
                   {"mode", Align::kLeft},
                   {"note", Align::kLeft}});
  for (const Row& row : rows) {
    table.add_row(
        {row.name, std::to_string(row.threads), amount(row, row.ours),
         row.gflops ? fmt::format("{:.1f}", row.gflops->median) : "",
         amount(row, row.baseline), format_value(row), format_goal(row),
         reached_cell(row, colours),
         row.extra_bytes
             ? fmt::format("{:.2f}",
                           static_cast<double>(*row.extra_bytes) / 1e6)
             : "",
         row.speedup ? fmt::format("{:.2f}×", row.speedup->median) : "",
         row.baseline_name, row.mode, row.note});
  }
  return table.to_string();
}

std::string verdict(const std::vector<Row>& rows) {
  int goals = 0;
  std::vector<std::string> missed, absent;
  for (const Row& row : rows) {
    if (!row.goal) continue;
    const std::string line = fmt::format(
        "{}, {}: {}, must be {}", row.name, threads_text(row.threads),
        row.value ? format_value(row) : row.note, format_goal(row));
    if (row.value) ++goals;
    if (!row.value) absent.push_back(line);
    if (row.reached() == false) missed.push_back(line);
  }
  std::string text;
  if (!missed.empty()) {
    text = fmt::format("\nMissed {} of {} goals:\n{}", missed.size(), goals,
                       lines_text(missed));
  } else if (goals > 0) {
    text = fmt::format("\nAll {} goals are reached.\n", goals);
  }
  if (absent.empty()) return text;
  return text + "\nNot measured:\n" + lines_text(absent);
}

}  // namespace polyattn::bench
