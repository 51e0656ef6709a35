// From folders that a user names to the runs in them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace polyattn::report {

// A folder with run.json.
struct FoundRun {
  std::filesystem::path folder;  // canonical
  // The path from the folder that all runs have in common; no two are equal.
  // Always UTF-8.
  std::string name;
};

struct Search {
  std::vector<FoundRun> runs;  // by path
  std::vector<std::string> warnings;
};

inline constexpr std::size_t kMaxRuns = 1000;

// Each folder is a run, a comparison (a folder of runs), or a folder of those,
// three levels in all. Links are followed, each run is taken once, and those of
// a search (a folder grid beside grid.json) are left out. Throws
// std::runtime_error if a folder is none.
Search find_runs(const std::vector<std::filesystem::path>& folders);

// The same for one folder, a canonical path, without following what leads out
// of it. Names are paths from it.
Search find_runs_beneath(const std::filesystem::path& root);

}  // namespace polyattn::report
