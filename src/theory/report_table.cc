#include "theory/report_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text_table.h"

namespace polyattn::theory {
namespace {

using base::Align;
using theory::Claim;
using theory::Relation;
using theory::Row;
using theory::Verdict;

constexpr std::size_t kMostFailures = 10;  // of a series

// A line of the table: one row, which stands for `rows` of them.
struct TheoryLine {
  const Row* row = nullptr;
  std::size_t rows = 0;
};

// Every row that fails, up to a limit, or else the one nearest to it.
std::vector<TheoryLine> lines_of_series(std::vector<const Row*> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) {
    const bool a_undecided = a->verdict == Verdict::kUndecided;
    const bool b_undecided = b->verdict == Verdict::kUndecided;
    if (a_undecided != b_undecided) return b_undecided;
    return a->strain > b->strain;
  });
  std::vector<TheoryLine> lines{{rows.front(), rows.size()}};
  for (std::size_t i = 1; i < std::min(rows.size(), kMostFailures); ++i) {
    if (rows[i]->verdict != Verdict::kFails) break;
    lines.push_back({rows[i], 1});
  }
  return lines;
}

std::vector<TheoryLine> lines_of(const Claim& claim) {
  std::vector<std::vector<const Row*>> series;
  std::map<std::string, std::size_t> places;
  for (const Row& row : claim.rows) {
    if (row.alone) {
      series.push_back({&row});
      continue;
    }
    const auto [place, fresh] = places.try_emplace(row.series, series.size());
    if (fresh) series.emplace_back();
    series[place->second].push_back(&row);
  }
  std::vector<TheoryLine> lines;
  for (const auto& rows : series) {
    const auto more = lines_of_series(rows);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

bool is_exponent(const Row& row) { return row.tokens_to > 0; }

std::string number_text(const Row& row, double value) {
  if (is_exponent(row)) return fmt::format("{:.4f}", value);
  const bool whole = std::abs(value) >= 1e4 && std::abs(value) < 1e7;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

// "x^2, N=64"; without what the first column says already.
std::string place_text(const Row& row) {
  if (is_exponent(row)) return row.subject;
  const bool named = row.subject != row.series;
  return fmt::format("{}{}N={}", named ? row.subject : "", named ? ", " : "",
                     row.tokens);
}

std::string relation_text(const Row& row) {
  const char* sign = row.relation == Relation::kAtMost    ? "≤"
                     : row.relation == Relation::kAtLeast ? "≥"
                                                          : "=";
  return fmt::format("{} {}", sign, number_text(row, row.expected));
}

std::string interval_text(const Row& row) {
  if (!row.interval) return "";
  return fmt::format("{}–{}", number_text(row, row.interval->low),
                     number_text(row, row.interval->high));
}

std::string verdict_text(const Row& row, bool colours) {
  if (row.verdict == Verdict::kUndecided) return "undecided";
  const bool yes = row.verdict == Verdict::kHolds;
  const std::string_view text = yes ? "yes" : "NO";
  if (!colours) return std::string(text);
  return coloured(text, yes ? base::Colour::kGreen : base::Colour::kRed);
}

std::string samples_text(const Row& row) {
  return row.samples > 0 ? std::to_string(row.samples) : "";
}

}  // namespace

std::string theorem_table(const Claim& claim, bool exponents, bool colours) {
  base::TextTable table(
      {{exponents ? "growth exponent of" : "compared", Align::kLeft},
       {"rows"},
       {exponents ? "for" : "nearest to failing", Align::kLeft},
       {"samples"},
       {"must be"},
       {"measured"},
       {"99 % interval", Align::kLeft},
       {"holds", Align::kLeft}});
  bool empty = true;
  for (const TheoryLine& line : lines_of(claim)) {
    const Row& row = *line.row;
    if (is_exponent(row) != exponents) continue;
    empty = false;
    table.add_row({row.series, row.alone ? "" : std::to_string(line.rows),
                   place_text(row), samples_text(row), relation_text(row),
                   number_text(row, row.measured), interval_text(row),
                   verdict_text(row, colours)});
  }
  return empty ? "" : table.to_string();
}

std::string observation_table(const Claim& claim) {
  base::TextTable table({{"observed", Align::kLeft},
                         {"for", Align::kLeft},
                         {"samples"},
                         {"theory"},
                         {"median"},
                         {"99 % interval", Align::kLeft},
                         {"ratio"}});
  for (const Row& row : claim.rows) {
    if (!row.alone) continue;
    table.add_row({row.series, place_text(row), samples_text(row),
                   number_text(row, row.expected),
                   number_text(row, row.measured), interval_text(row),
                   fmt::format("{:.3g}", row.measured / row.expected)});
  }
  return table.to_string();
}

}  // namespace polyattn::theory
