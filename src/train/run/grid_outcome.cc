// What a search found: chosen, printed and kept.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/output.h"
#include "base/text_file.h"
#include "base/text_table.h"
#include "train/run/grid.h"

namespace polyattn::run {
namespace {

constexpr std::size_t kMaxGridBytes = 1 << 20;

// Larger is better; none is the worst.
double merit(const GridCell& cell, Figure figure) {
  if (cell.figure.count == 0) return -std::numeric_limits<double>::infinity();
  return figure == Figure::kAccuracy ? cell.figure.mean : -cell.figure.mean;
}

GridCell cell_of(std::size_t setting, const std::vector<RunInfo>& infos) {
  const ComparisonRow row = compare_runs(infos).rows.front();
  GridCell cell{setting, row.figure, row.diverged};
  if (cell.diverged > 0) cell.figure = {};
  return cell;
}

GridRow row_of_grid(const RunInfo& first, const std::vector<GridRun>& runs,
                    Figure figure) {
  std::map<std::size_t, std::vector<RunInfo>> by_setting;
  for (const GridRun& run : runs) {
    if (arm_name(run.info) != arm_name(first)) continue;
    by_setting[run.setting].push_back(run.info);
  }
  GridRow row{.activation = first.activation,
              .variant = first.variant.value_or(""),
              .cells = {}};
  for (const auto& [setting, infos] : by_setting) {
    row.cells.push_back(cell_of(setting, infos));
    if (merit(row.cells.back(), figure) >
        merit(row.cells[row.chosen], figure)) {
      row.chosen = row.cells.size() - 1;
    }
  }
  return row;
}

std::string cell_text(const GridCell& cell, Figure figure) {
  if (cell.diverged > 0) return "diverged";
  const bool percent = figure == Figure::kAccuracy;
  const double factor = percent ? 100 : 1;
  const int decimals = percent ? 2 : 4;
  std::string text =
      fmt::format("{:.{}f}", factor * cell.figure.mean, decimals);
  if (cell.figure.count < 2) return text;
  return fmt::format("{} ± {:.{}f}", text, factor * cell.figure.deviation,
                     decimals);
}

const char* grid_title(Figure figure) {
  switch (figure) {
    case Figure::kAccuracy:
      return "validation accuracy, %";
    case Figure::kBitsPerByte:
      return "validation bits per byte";
    case Figure::kRelativeL2:
      return "validation relative L2";
    default:
      return "validation loss";
  }
}

base::Json plan_json(const GridPlan& plan) {
  base::Json json = {{"seeds", plan.seeds},
                     {"validation", plan.validation},
                     {"axes", base::Json::array()}};
  for (const GridAxis& axis : plan.axes) {
    json["axes"].push_back({{"key", axis.key}, {"values", axis.values}});
  }
  return json;
}

base::Json cell_json(const GridCell& cell, const GridSetting& setting) {
  base::Json values = base::Json::array();
  for (const Setting& part : setting) values.push_back(part.value);
  base::Json json = {{"values", values},
                     {"figure", base::Json()},
                     {"diverged", cell.diverged}};
  if (cell.figure.count > 0) {
    json["figure"] = {{"mean", base::number(cell.figure.mean)},
                      {"deviation", base::number(cell.figure.deviation)},
                      {"count", cell.figure.count}};
  }
  return json;
}

std::filesystem::path grid_file(const std::filesystem::path& folder) {
  return folder / "grid.json";
}

[[noreturn]] void refuse_grid(const std::filesystem::path& folder,
                              const std::string& why) {
  throw std::runtime_error(
      fmt::format("{} {}: choose another folder with --out",
                  grid_file(folder).string(), why));
}

// What is in both was chosen alike.
void check_chosen(const std::filesystem::path& folder, const base::Json& old,
                  const base::Json& found) {
  for (const base::Json& was : old.at("rows")) {
    for (const base::Json& is : found.at("rows")) {
      if (was.at("activation") != is.at("activation") ||
          was.value("variant", "") != is.value("variant", "")) {
        continue;
      }
      if (was.at("chosen") == is.at("chosen")) continue;
      refuse_grid(
          folder,
          fmt::format("has chosen setting {} for {}, but by its runs "
                      "it is {}",
                      was.at("chosen").dump(), is.at("activation").dump(),
                      is.at("chosen").dump()));
    }
  }
}

}  // namespace

GridOutcome choose_settings(const GridPlan& plan,
                            const std::vector<GridRun>& runs) {
  std::vector<RunInfo> infos;
  infos.reserve(runs.size());
  for (const GridRun& run : runs) infos.push_back(run.info);
  const Comparison all = compare_runs(infos);
  GridOutcome outcome{plan, all.task, all.figure, {}};
  std::set<std::string> names;
  for (const RunInfo& info : infos) {
    if (!names.insert(arm_name(info)).second) continue;
    outcome.rows.push_back(row_of_grid(info, runs, all.figure));
  }
  return outcome;
}

std::string grid_table(const GridOutcome& outcome) {
  const auto settings = settings_of(outcome.plan.axes);
  base::TextTable table({{"activation", base::Align::kLeft},
                         {"setting", base::Align::kLeft},
                         {grid_title(outcome.figure)},
                         {"", base::Align::kLeft}});
  for (const GridRow& row : outcome.rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const GridCell& cell = row.cells[i];
      table.add_row(
          {i == 0 ? row.name() : "", setting_text(settings[cell.setting]),
           cell_text(cell, outcome.figure), i == row.chosen ? "chosen" : ""});
    }
  }
  return table.to_string();
}

base::Json grid_json(const GridOutcome& outcome) {
  const auto settings = settings_of(outcome.plan.axes);
  base::Json json = plan_json(outcome.plan);
  json["task"] = outcome.task;
  json["figure"] = name_of(outcome.figure);
  json["rows"] = base::Json::array();
  for (const GridRow& row : outcome.rows) {
    base::Json cells = base::Json::array();
    for (const GridCell& cell : row.cells) {
      cells.push_back(cell_json(cell, settings[cell.setting]));
    }
    base::Json member = {{"activation", row.activation}};
    if (!row.variant.empty()) member["variant"] = row.variant;
    member["cells"] = cells;
    member["chosen"] = row.chosen;
    json["rows"].push_back(std::move(member));
  }
  return json;
}

void check_grid_file(const std::filesystem::path& folder,
                     const GridOutcome& outcome) {
  if (!std::filesystem::exists(grid_file(folder))) return;
  try {
    const base::Json old = base::parse_json(
        base::read_text_file(grid_file(folder), kMaxGridBytes));
    const base::Json plan = plan_json(outcome.plan);
    for (const auto& [key, value] : plan.items()) {
      if (old.at(key) == value) continue;
      refuse_grid(folder, fmt::format("is of a search with other {}", key));
    }
    check_chosen(folder, old, grid_json(outcome));
  } catch (const base::Json::exception& error) {
    refuse_grid(folder, fmt::format("is damaged ({})", error.what()));
  } catch (const base::JsonError& error) {
    refuse_grid(folder, fmt::format("is damaged ({})", error.what()));
  }
}

void write_grid_file(const std::filesystem::path& folder,
                     const GridOutcome& outcome) {
  base::write_text_file(grid_file(folder), base::json_text(grid_json(outcome)));
}

}  // namespace polyattn::run
