// What `polyattn data` prints, as tables and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "data/cache.h"
#include "data/catalogue.h"
#include "data/verify.h"

namespace polyattn::data {

// "184 MB": decimal units, as disks are sold.
std::string size_text(std::uint64_t bytes);

std::string sets_table(std::span<const SetEntry> sets);
nlohmann::ordered_json sets_json(std::span<const SetEntry> sets);

// A set that was fetched, or was not.
struct FetchedSet {
  const SetEntry* entry;
  SetPlace place;
  bool was_there = false;
  std::string error = {};  // empty if all went well
};

std::string fetched_text(const FetchedSet& set);
nlohmann::ordered_json fetched_json(std::span<const FetchedSet> sets);

struct VerifiedSet {
  const SetEntry* entry;
  SetPlace place;
  std::vector<FileCheck> checks;

  bool right() const;
};

// The files that are wrong, and how to mend them; or that all are right.
std::string verified_text(const VerifiedSet& set);
nlohmann::ordered_json verified_json(std::span<const VerifiedSet> sets);

}  // namespace polyattn::data
