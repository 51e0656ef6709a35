#include "bench/duel.h"

#include <fmt/format.h>

#include <stdexcept>

#include "base/text_table.h"
#include "bench/timed.h"

namespace polyattn::bench {
namespace {

using base::Align;
using base::Colour;
using base::coloured;
using base::TextTable;

using Json = nlohmann::ordered_json;

std::string suffix_of(DuelUnit unit) {
  return unit == DuelUnit::kMilliseconds ? "ms" : "mb";
}

Json row_json(const DuelRow& row) {
  Json json{{"name", row.name}, {"threads", row.threads}};
  for (const DuelUnit unit : {DuelUnit::kMilliseconds, DuelUnit::kMegabytes}) {
    const bool own = unit == row.unit;
    json["ours_" + suffix_of(unit)] = own ? Json(row.ours.median) : Json();
    json["rival_" + suffix_of(unit)] = own ? Json(row.theirs.median) : Json();
  }
  json["ratio"] = row.ratio.median;
  json["ratio_q1"] = row.ratio.q1;
  json["ratio_q3"] = row.ratio.q3;
  json["target"] = row.target ? Json(*row.target) : Json();
  json["reached"] = row.reached() ? Json(*row.reached()) : Json();
  if (row.items > 0) {
    json["items"] = row.items;
    json["item"] = row.item_name;
    json["ours_items_per_second"] = 1e3 * row.items / row.ours.median;
    json["rival_items_per_second"] = 1e3 * row.items / row.theirs.median;
  }
  json["rival"] = row.rival;
  json["mode"] = row.mode;
  return json;
}

DuelRow row_of(const Json& json) {
  DuelRow row;
  row.name = json.at("name");
  row.threads = json.at("threads");
  row.unit = json.at("ours_ms").is_null() ? DuelUnit::kMegabytes
                                          : DuelUnit::kMilliseconds;
  row.ours.median = json.at("ours_" + suffix_of(row.unit));
  row.theirs.median = json.at("rival_" + suffix_of(row.unit));
  row.ratio = {json.at("ratio"), json.at("ratio_q1"), json.at("ratio_q3")};
  if (!json.at("target").is_null()) row.target = json.at("target");
  row.rival = json.at("rival");
  row.mode = json.at("mode");
  row.items = json.value("items", 0.0);
  row.item_name = json.value("item", std::string());
  return row;
}

std::string quantity(const DuelRow& row, const base::Spread& spread) {
  if (row.items > 0) {
    return fmt::format("{:.0f} {}/s", 1e3 * row.items / spread.median,
                       row.item_name);
  }
  return row.unit == DuelUnit::kMilliseconds
             ? fmt::format("{:.2f} ms", spread.median)
             : fmt::format("{:.1f} MB", spread.median);
}

std::string reached_cell(const DuelRow& row, bool colours) {
  if (!row.reached()) return "";
  const bool reached = *row.reached();
  const char* text = reached ? "yes" : "NO";
  if (!colours) return text;
  return coloured(text, reached ? Colour::kGreen : Colour::kRed);
}

std::string verdict(const std::vector<DuelRow>& rows) {
  int goals = 0;
  std::string missed;
  int misses = 0;
  for (const DuelRow& row : rows) {
    if (!row.target) continue;
    ++goals;
    if (*row.reached()) continue;
    ++misses;
    missed += fmt::format("  {}, threads: {}: {:.2f}×, must be ≥ {:.2f}×\n",
                          row.name, row.threads, row.ratio.median, *row.target);
  }
  if (goals == 0) return "";
  if (misses == 0) return fmt::format("\nAll {} goals are reached.\n", goals);
  return fmt::format("\nMissed {} of {} goals:\n{}", misses, goals, missed);
}

}  // namespace

std::optional<bool> DuelRow::reached() const {
  if (!target) return std::nullopt;
  return ratio.median >= *target;
}

void time_duel(const DuelCalls& calls, const DuelRounds& rounds, DuelRow& row) {
  const Timed ours(calls.ours, rounds.min_seconds);
  const Timed theirs(calls.theirs, rounds.min_seconds);
  std::vector<double> a, b, ratio;
  for (int i = 0; i < rounds.rounds; ++i) {
    // The order alternates, so that neither always follows the other.
    if (i % 2 == 0) a.push_back(ours.seconds_per_call() * 1e3);
    b.push_back(theirs.seconds_per_call() * 1e3);
    if (i % 2 != 0) a.push_back(ours.seconds_per_call() * 1e3);
    ratio.push_back(b.back() / a.back());
  }
  row.ours = base::spread_of(a);
  row.theirs = base::spread_of(b);
  row.ratio = base::spread_of(ratio);
}

std::vector<DuelRow> better_rivals(const std::vector<DuelRow>& a,
                                   const std::vector<DuelRow>& b) {
  if (a.size() != b.size()) {
    throw std::invalid_argument(
        fmt::format("[bench] {} rows != {} rows", a.size(), b.size()));
  }
  std::vector<DuelRow> better;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || a[i].threads != b[i].threads) {
      throw std::invalid_argument(
          fmt::format("[bench] row {}, threads: {} != row {}, threads: {}",
                      a[i].name, a[i].threads, b[i].name, b[i].threads));
    }
    better.push_back(b[i].ratio.median < a[i].ratio.median ? b[i] : a[i]);
  }
  return better;
}

Json duel_json(const std::vector<DuelRow>& rows) {
  Json list = Json::array();
  for (const DuelRow& row : rows) list.push_back(row_json(row));
  return list;
}

std::vector<DuelRow> duel_rows(const Json& json) {
  std::vector<DuelRow> rows;
  for (const Json& row : json) rows.push_back(row_of(row));
  return rows;
}

std::string duel_table(const std::vector<DuelRow>& rows, bool colours) {
  TextTable table({{"case", Align::kLeft},
                   {"threads"},
                   {"ours"},
                   {"rival"},
                   {"ratio (quartiles)", Align::kLeft},
                   {"goal", Align::kLeft},
                   {"reached", Align::kLeft},
                   {"rival is", Align::kLeft},
                   {"mode", Align::kLeft}});
  for (const DuelRow& row : rows) {
    table.add_row({row.name, std::to_string(row.threads),
                   quantity(row, row.ours), quantity(row, row.theirs),
                   fmt::format("{:.2f}× ({:.2f}–{:.2f})", row.ratio.median,
                               row.ratio.q1, row.ratio.q3),
                   row.target ? fmt::format("≥ {:.2f}×", *row.target) : "",
                   reached_cell(row, colours), row.rival, row.mode});
  }
  return table.to_string() + verdict(rows);
}

}  // namespace polyattn::bench
