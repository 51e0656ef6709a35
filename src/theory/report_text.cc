#include "theory/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/message.h"
#include "theory/report_table.h"
#include "theory/study.h"

namespace polyattn::theory {
namespace {

using theory::Claim;
using theory::Row;
using theory::Status;
using theory::Verdict;

constexpr std::size_t kTheoryColumns = 100;
constexpr std::string_view kTheoryIndent = "   ";

std::string indented(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    result += fmt::format("{}{}\n", kTheoryIndent, text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return result;
}

std::string tables_of(const Claim& claim, bool colours) {
  if (claim.status == Status::kObservation) {
    return "\n" + indented(observation_table(claim));
  }
  std::string text;
  for (const bool exponents : {false, true}) {
    const std::string table = theorem_table(claim, exponents, colours);
    if (!table.empty()) text += "\n" + indented(table);
  }
  return text;
}

std::int64_t count_of(const Claim& claim, Verdict verdict) {
  return std::count_if(claim.rows.begin(), claim.rows.end(),
                       [&](const Row& row) { return row.verdict == verdict; });
}

std::string status_text(const Claim& claim) {
  if (claim.status == Status::kObservation) return "OBSERVATION";
  if (!theory::holds(claim)) return "THEOREM, DOES NOT HOLD";
  const std::int64_t undecided = count_of(claim, Verdict::kUndecided);
  if (undecided == 0) return "THEOREM, holds";
  return fmt::format("THEOREM, holds in {} rows, {} undecided",
                     count_of(claim, Verdict::kHolds), undecided);
}

std::string claim_text(const Claim& claim, std::size_t number, bool colours) {
  std::string text =
      fmt::format("{}. {}: {}\n", number, claim.id, status_text(claim));
  text += wrapped(claim.statement, kTheoryColumns, kTheoryIndent);
  text += wrapped("Computed: " + claim.computed, kTheoryColumns, kTheoryIndent);
  for (const std::string& note : claim.notes) {
    text += wrapped(note, kTheoryColumns, kTheoryIndent);
  }
  return text + tables_of(claim, colours) + "\n";
}

struct TheoryCounts {
  std::int64_t decided = 0, failed = 0, undecided = 0;
};

TheoryCounts count_rows(const std::vector<Claim>& claims) {
  TheoryCounts counts;
  for (const Claim& claim : claims) {
    const std::int64_t failed = count_of(claim, Verdict::kFails);
    counts.failed += failed;
    counts.decided += failed + count_of(claim, Verdict::kHolds);
    counts.undecided += count_of(claim, Verdict::kUndecided);
  }
  return counts;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t columns,
                    std::string_view indent) {
  std::string result, line;
  const auto flush = [&] {
    if (!line.empty()) result += fmt::format("{}{}\n", indent, line);
    line.clear();
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t width = indent.size() + line.size() + 1 + word.size();
    if (!line.empty() && width > columns) flush();
    line += fmt::format("{}{}", line.empty() ? "" : " ", word);
  }
  flush();
  return result;
}

std::string claims_text(const std::vector<Claim>& claims, bool colours) {
  std::string text;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    text += claim_text(claims[i], i + 1, colours);
  }
  return text;
}

std::string conclusion(const std::vector<Claim>& claims) {
  const TheoryCounts counts = count_rows(claims);
  const double chance =
      static_cast<double>(theory::chance_comparisons(claims)) *
      theory::kDecisionTail;
  std::string text =
      counts.failed == 0
          ? fmt::format("All theorems hold in {} comparisons.", counts.decided)
          : fmt::format("{} of {} comparisons DO NOT HOLD.", counts.failed,
                        counts.decided);
  if (counts.undecided > 0) {
    text += fmt::format(
        " {} more are undecided, because so few matrices say nothing about "
        "means that rare large scores carry: raise --samples, or take lower "
        "degrees.",
        counts.undecided);
  }
  if (chance > 0) {
    // To the nearest thousand: the level itself is approximate.
    text += fmt::format(
        " Chance alone would let one run in about {} fail. --json has all "
        "rows.",
        base::grouped(1000 *
                      static_cast<std::uint64_t>(std::ceil(1e-3 / chance))));
  }
  return wrapped(text, kTheoryColumns, "");
}

}  // namespace polyattn::theory
