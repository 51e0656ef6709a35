#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/openblas.h"
#include "base/text_table.h"
#include "bench/report.h"
#include "bench/sgemm.h"
#include "bench/table.h"

namespace polyattn::bench {
namespace {

using base::Align;
using base::TextTable;
using Json = nlohmann::ordered_json;

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
  return fmt::format("sgemm ({}): {}\n", base::openblas_name(),
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

std::string legend(const std::vector<Row>& rows) {
  const bool any = std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.baseline_name == "materialised";
  });
  return any ? "materialised: matmul, activation, matmul with OpenBLAS, the "
               "N × M matrix in memory\n"
             : "";
}

std::string list_cell(const Json& value) {
  if (value.is_null()) return "no limit found";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  return fmt::format("{:.3g}", value.get<double>());
}

// A list of objects as a table, their keys as its head.
std::string list_text(const std::string& heading, const Json& list) {
  if (list.empty()) return "";
  std::vector<base::Column> columns;
  for (const auto& [key, value] : list[0].items()) {
    std::string title = key;
    std::replace(title.begin(), title.end(), '_', ' ');
    columns.push_back(
        {title, value.is_string() ? Align::kLeft : Align::kRight});
  }
  TextTable table(columns);
  for (const Json& row : list) {
    std::vector<std::string> cells;
    for (const Json& value : row) cells.push_back(list_cell(value));
    table.add_row(cells);
  }
  return fmt::format("\n{}\n{}", heading, table.to_string());
}

std::string planner_text(const Json& list) {
  std::vector<Json> wrong;
  for (const Json& row : list) {
    if (row.at("loss") > kTolerableLoss) wrong.push_back(row);
  }
  std::sort(wrong.begin(), wrong.end(), [](const Json& a, const Json& b) {
    return a.at("loss") > b.at("loss");
  });
  const std::size_t listed = std::min(wrong.size(), kMostListed);
  const std::string heading =
      fmt::format("Worst choices of the planner, {} of {} above {:.2f}", listed,
                  wrong.size(), kTolerableLoss);
  wrong.resize(listed);
  return list_text(heading, wrong);
}

}  // namespace

std::string report_text(const Report& report, bool colours) {
  const auto rates = sgemm_rates(report.rows);
  return sgemm_line(rates) + busy_note(rates) + legend(report.rows) + "\n" +
         table_text(report.rows, colours) +
         list_text(
             "Error against the reference in f64, over the root mean "
             "square of its output",
             report.accuracy) +
         list_text(
             "Largest factor a of standard normal q and k before f32 "
             "overflows (N = 64)",
             report.overflow) +
         planner_text(report.planner) + verdict(report.rows);
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
