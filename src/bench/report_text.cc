#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text_table.h"
#include "bench/report.h"
#include "bench/sgemm.h"
#include "bench/table.h"
#include "polyattn/target.h"

namespace polyattn::bench {
namespace {

using base::Align;
using base::TextTable;

// Wrong choices of the planner that are listed.
constexpr std::size_t kMostListed = 10;
constexpr double kTolerableLoss = 1.10;

// Medians of sgemm over the run, by number of threads.
std::map<int, double> sgemm_rates(const std::vector<Row>& rows) {
  std::map<int, std::vector<double>> all;
  for (const Row& row : rows) {
    if (row.sgemm) all[row.threads].push_back(row.sgemm->median);
  }
  std::map<int, double> rates;
  for (const auto& [threads, values] : all) {
    rates[threads] = base::spread_of(values).median;
  }
  return rates;
}

std::string sgemm_line(const std::map<int, double>& rates) {
  if (rates.empty()) return "";
  std::vector<std::string> parts;
  parts.reserve(rates.size());
  for (const auto& [threads, rate] : rates) {
    parts.push_back(
        fmt::format("{:.1f} Gflop/s with {}", rate, threads_text(threads)));
  }
  return fmt::format(
      "sgemm ({}): {}\n{}", sgemm_library(), fmt::join(parts, ", "),
      sgemm_caution(sgemm_library(), supported_targets().front()));
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

std::string legend(const std::vector<Row>& rows) {
  const bool any = std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.baseline_name == "materialised";
  });
  return any ? "materialised: matmul, activation, matmul with OpenBLAS, the "
               "N × M matrix in memory\n"
             : "";
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

}  // namespace

std::string report_text(const Report& report, bool colours) {
  const auto rates = sgemm_rates(report.rows);
  std::string text = sgemm_line(rates) + busy_note(rates) +
                     legend(report.rows) + "\n" +
                     table_text(report.rows, colours);
  if (!report.accuracy.empty()) text += accuracy_text(report.accuracy);
  if (!report.overflow.empty()) text += overflow_text(report.overflow);
  return text + planner_text(report.planner) + verdict(report.rows);
}

Report run_tasks(const std::vector<Task>& tasks, base::ProgressStyle style) {
  double total = 0;
  for (const Task& task : tasks) total += task.effort;
  base::Progress progress(style, static_cast<int>(tasks.size()), total);
  Report report;
  for (const Task& task : tasks) {
    progress.step(task.name, task.effort);
    task.run(report);
  }
  return report;
}

}  // namespace polyattn::bench
