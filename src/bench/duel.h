// Ours against a named rival, side by side: the rows that every bench of whole
// operations reports, as a table and as JSON.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/statistics.h"

namespace polyattn::bench {

enum class DuelUnit { kMilliseconds, kMegabytes };

struct DuelRow {
  std::string name;
  std::string rival;
  int threads = 1;
  DuelUnit unit = DuelUnit::kMilliseconds;
  base::Spread ours;
  base::Spread theirs;
  base::Spread ratio;            // theirs / ours, formed inside a round
  std::optional<double> target;  // what the ratio must reach
  std::string mode = "default";  // how the rival was run
  double items = 0;              // that a call works through; 0: not counted
  std::string item_name = {};    // images, tokens

  std::optional<bool> reached() const;
};

struct DuelCalls {
  std::function<void()> ours;
  std::function<void()> theirs;
};

struct DuelRounds {
  int rounds = 7;
  double min_seconds = 0.05;  // what a round spends in each, at least
};

// Times both by turns, and fills in ours, theirs and ratio.
void time_duel(const DuelCalls& calls, const DuelRounds& rounds, DuelRow& row);

// Of two lists of the same rows, with the rival run in two ways, the rows in
// which the rival did better. Throws std::invalid_argument if the rows differ.
std::vector<DuelRow> better_rivals(const std::vector<DuelRow>& a,
                                   const std::vector<DuelRow>& b);

// name, threads, ours_ms, rival_ms, ratio, target and more; megabytes instead
// of milliseconds for memory.
nlohmann::ordered_json duel_json(const std::vector<DuelRow>& rows);

// The inverse. Throws nlohmann::json::exception.
std::vector<DuelRow> duel_rows(const nlohmann::ordered_json& json);

std::string duel_table(const std::vector<DuelRow>& rows, bool colours);

}  // namespace polyattn::bench
