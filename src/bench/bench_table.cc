#include "bench/bench_table.h"

#include <fmt/format.h>

#include <map>

#include "base/text_table.h"
#include "bench/sgemm.h"

namespace polyattn::bench {
namespace {

using base::Align;
using base::Colour;
using base::coloured;
using base::TextTable;

constexpr double kTableMegabyte = 1e6;

std::string threads_text(int threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

// What the number of the figure multiplies.
std::string unit_of(const Figure& figure) {
  switch (figure.measure) {
    case Measure::kSgemmRatio:
      return "× sgemm";
    case Measure::kTimeRatio:
      return fmt::format("× time {}", figure.baseline_name);
    case Measure::kSpeedRatio:
      return fmt::format("× speed {}", figure.baseline_name);
    case Measure::kExtraBytes:
      return "MB extra";
  }
  return "";
}

std::string goal_number(const Figure& figure) {
  if (figure.measure == Measure::kExtraBytes) {
    return fmt::format("{:.0f} MB", figure.goal->value / kTableMegabyte);
  }
  return fmt::format("{:.2f}", figure.goal->value);
}

// Medians of sgemm over the run, by number of threads.
std::map<int, double> sgemm_rates(
    const std::vector<Measurement>& measurements) {
  std::map<int, std::vector<double>> all;
  for (const Measurement& m : measurements) {
    if (m.sgemm) all[m.figure.subject.threads].push_back(m.sgemm->median);
  }
  std::map<int, double> rates;
  for (const auto& [threads, values] : all) {
    rates[threads] = base::spread_of(values).median;
  }
  return rates;
}

std::string sgemm_line(const std::map<int, double>& rates) {
  if (rates.empty()) {
    return "sgemm: built without OpenBLAS, so no ratios to it\n";
  }
  std::vector<std::string> parts;
  parts.reserve(rates.size());
  for (const auto& [threads, rate] : rates) {
    parts.push_back(
        fmt::format("{:.1f} Gflop/s with {}", rate, threads_text(threads)));
  }
  return fmt::format("sgemm 2048³ ({}): {}\n", sgemm_library(),
                     fmt::join(parts, ", "));
}

// Threads that did not even help sgemm had no core of their own.
std::string busy_note(const std::map<int, double>& rates) {
  std::string note;
  if (!rates.contains(1)) return note;
  for (const auto& [threads, rate] : rates) {
    const double gain = rate / rates.at(1);
    if (gain >= 0.75 * threads) continue;
    note += fmt::format(
        "note: sgemm gained only {:.2f}× from {} threads: other programs held "
        "the cores,\n      so figures with {} threads mean little\n",
        gain, threads, threads);
  }
  return note;
}

std::string reached_cell(const Measurement& m, bool colours) {
  if (!m.reached) return "";
  const std::string_view text = *m.reached ? "yes" : "NO";
  if (!colours) return std::string(text);
  return coloured(text, *m.reached ? Colour::kGreen : Colour::kRed);
}

std::vector<std::string> cells_of(const Measurement& m, bool colours) {
  const auto number = [](const std::optional<base::Spread>& spread,
                         double factor) {
    return spread ? fmt::format("{:.2f}", spread->median * factor) : "";
  };
  return {m.figure.name,
          std::to_string(m.figure.subject.threads),
          fmt::format("{:.2f}", m.seconds.median * 1e3),
          fmt::format("{:.1f}", m.gflops.median),
          format_value(m),
          format_goal(m.figure),
          reached_cell(m, colours),
          fmt::format("{:.2f}", m.extra_bytes / kTableMegabyte),
          number(m.rival_seconds, 1e3),
          m.speedup ? fmt::format("{:.2f}×", m.speedup->median) : ""};
}

std::string verdict(const std::vector<Measurement>& measurements) {
  int goals = 0;
  std::vector<std::string> missed;
  for (const Measurement& m : measurements) {
    if (!m.reached) continue;
    ++goals;
    if (*m.reached) continue;
    missed.push_back(fmt::format("  {}, {}: {}, must be {}\n", m.figure.name,
                                 threads_text(m.figure.subject.threads),
                                 format_value(m), format_goal(m.figure)));
  }
  if (goals == 0) return "";
  if (missed.empty()) {
    return fmt::format("\nAll {} goals are reached.\n", goals);
  }
  return fmt::format("\nMissed {} of {} goals:\n{}", missed.size(), goals,
                     fmt::join(missed, ""));
}

}  // namespace

std::string format_value(const Measurement& m) {
  if (!m.value) return "not available";
  if (m.figure.measure == Measure::kExtraBytes) {
    return fmt::format("{:.2f} {}", m.value->median / kTableMegabyte,
                       unit_of(m.figure));
  }
  return fmt::format("{:.2f} ({:.2f}–{:.2f}) {}", m.value->median, m.value->q1,
                     m.value->q3, unit_of(m.figure));
}

std::string format_goal(const Figure& figure) {
  if (!figure.goal) return "";
  const bool least = figure.goal->bound == Bound::kAtLeast;
  return fmt::format("{} {}", least ? "≥" : "≤", goal_number(figure));
}

std::string bench_table(const std::vector<Measurement>& measurements,
                        const TableStyle& style) {
  TextTable table({{"case (f32 unless named)", Align::kLeft},
                   {"threads"},
                   {"ms"},
                   {"Gflop/s"},
                   {"median (quartiles)", Align::kLeft},
                   {"goal", Align::kLeft},
                   {"reached", Align::kLeft},
                   {"extra MB"},
                   {"rival ms"},
                   {"speed-up"}});
  for (const Measurement& m : measurements) {
    table.add_row(cells_of(m, style.colours));
  }
  const auto rates = sgemm_rates(measurements);
  return fmt::format(
      "{}\n{}{}rival: matmul, activation, matmul with OpenBLAS, the N × M "
      "matrix in memory\n\n{}{}",
      style.machine, sgemm_line(rates), busy_note(rates), table.to_string(),
      verdict(measurements));
}

}  // namespace polyattn::bench
