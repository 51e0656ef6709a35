// What a run wrote into its metrics.jsonl.
#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "support/temporary_folder.h"

namespace polyattn::test {

inline std::vector<base::Json> records_in(const std::filesystem::path& path) {
  std::istringstream text(read_text(path));
  std::vector<base::Json> records;
  for (std::string line; std::getline(text, line);) {
    records.push_back(base::parse_json(line));
  }
  return records;
}

// Of a run's folder, without what a clock tells.
inline std::vector<base::Json> timeless(const std::filesystem::path& folder) {
  auto records = records_in(folder / "metrics.jsonl");
  for (base::Json& record : records) {
    for (const char* key : {"seconds", "items_per_second", "wait_share"}) {
      record.erase(key);
    }
  }
  return records;
}

}  // namespace polyattn::test
