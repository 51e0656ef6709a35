// Checks the files of a set against the digests of the catalogue.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/catalogue.h"

namespace polyattn::data {

struct FileCheck {
  std::string name;      // "*.txt" for a group
  std::string expected;  // sha256
  std::string found;     // sha256; empty if the file cannot be read
  std::string problem;   // empty if all is well

  bool right() const { return problem.empty(); }
};

// Reads every file of the set in this folder. Never throws for what it finds.
std::vector<FileCheck> verify(const SetEntry& entry,
                              const std::filesystem::path& folder);

}  // namespace polyattn::data
