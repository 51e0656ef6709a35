#include "data/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json_text.h"
#include "base/text_table.h"

namespace polyattn::data {
namespace {

using base::Align;
using base::TextTable;

std::string_view origin_name(Origin origin) {
  switch (origin) {
    case Origin::kNpm:
      return "npm";
    case Origin::kDebian:
      return "debian";
    case Origin::kGenerated:
      return "generated";
  }
  return "";
}

bool is_present(const SetPlace& place) {
  return place.state != SetState::kAbsent;
}

std::string how_to_mend(const VerifiedSet& set) {
  if (set.place.state == SetState::kInstalled) {
    return fmt::format(
        "reinstall it: apt install --reinstall {}; or have a copy of your own: "
        "polyattn data fetch --force {}",
        set.entry->package, set.entry->name);
  }
  return fmt::format("mend it: polyattn data fetch --force {}",
                     set.entry->name);
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits{"B", "kB", "MB", "GB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return value < 9.95 && unit > 0
             ? fmt::format("{:.1f} {}", value, kUnits[unit])
             : fmt::format("{:.0f} {}", value, kUnits[unit]);
}

std::string sets_table(std::span<const SetEntry> sets) {
  TextTable table({{"name", Align::kLeft},
                   {"what", Align::kLeft},
                   {"size", Align::kRight},
                   {"licence", Align::kLeft},
                   {"state", Align::kLeft},
                   {"path", Align::kLeft}});
  for (const SetEntry& entry : sets) {
    const SetPlace place = locate(entry);
    const std::uint64_t size = entry.size();
    table.add_row({std::string(entry.name), std::string(entry.title),
                   size == 0 ? "" : size_text(size), std::string(entry.licence),
                   std::string(name_of(place.state)),
                   is_present(place) ? place.path.string() : ""});
  }
  return table.to_string();
}

base::Json sets_json(std::span<const SetEntry> sets) {
  base::Json list = base::Json::array();
  for (const SetEntry& entry : sets) {
    const SetPlace place = locate(entry);
    list.push_back({{"name", entry.name},
                    {"title", entry.title},
                    {"licence", entry.licence},
                    {"origin", origin_name(entry.origin)},
                    {"package", entry.package},
                    {"version", entry.version},
                    {"size", entry.size()},
                    {"archive_size", entry.archive_size},
                    {"archive_sha256", entry.archive_sha256},
                    {"state", name_of(place.state)},
                    {"path", place.path.string()}});
  }
  return {{"sets", std::move(list)}};
}

std::string fetched_text(const FetchedSet& set) {
  if (set.place.state == SetState::kGenerated) {
    return fmt::format("{}: made when first used, nothing to fetch\n",
                       set.entry->name);
  }
  return fmt::format("{}: {}{} in {}\n", set.entry->name,
                     set.was_there ? "already " : "", name_of(set.place.state),
                     set.place.path.string());
}

base::Json fetched_json(std::span<const FetchedSet> sets) {
  base::Json list = base::Json::array();
  for (const FetchedSet& set : sets) {
    base::Json json = {{"name", set.entry->name},
                       {"state", name_of(set.place.state)},
                       {"path", set.place.path.string()},
                       {"was_there", set.was_there}};
    if (!set.error.empty()) json["error"] = set.error;
    list.push_back(std::move(json));
  }
  return {{"sets", std::move(list)}};
}

bool VerifiedSet::right() const {
  return std::all_of(checks.begin(), checks.end(),
                     [](const auto& check) { return check.right(); });
}

std::string verified_text(const VerifiedSet& set) {
  if (set.place.state == SetState::kGenerated) {
    return fmt::format("{}: made when first used, nothing to check\n",
                       set.entry->name);
  }
  if (set.right()) {
    return fmt::format("{}: all is right in {}\n", set.entry->name,
                       set.place.path.string());
  }
  std::string text;
  for (const FileCheck& check : set.checks) {
    if (check.right()) continue;
    text += fmt::format("{}: wrong: {}\n", set.entry->name, check.problem);
  }
  return text + fmt::format("{}: {}\n", set.entry->name, how_to_mend(set));
}

base::Json verified_json(std::span<const VerifiedSet> sets) {
  base::Json list = base::Json::array();
  bool right = true;
  for (const VerifiedSet& set : sets) {
    base::Json files = base::Json::array();
    for (const FileCheck& check : set.checks) {
      base::Json file = {{"name", check.name},
                         {"right", check.right()},
                         {"expected", check.expected},
                         {"found", check.found}};
      if (!check.right()) file["problem"] = check.problem;
      files.push_back(std::move(file));
    }
    right = right && set.right();
    list.push_back({{"name", set.entry->name},
                    {"state", name_of(set.place.state)},
                    {"path", set.place.path.string()},
                    {"right", set.right()},
                    {"files", std::move(files)}});
  }
  return {{"right", right}, {"sets", std::move(list)}};
}

}  // namespace polyattn::data
