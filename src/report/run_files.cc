#include "report/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "report/solution_text.h"
#include "report/text.h"
#include "train/run/solution.h"

namespace polyattn::report {
namespace {

// Ten times what polyattn writes.
constexpr std::size_t kMaxConfigBytes = 1 << 16;
constexpr std::size_t kMaxLengthsBytes = 1 << 18;

}  // namespace

RunFiles::RunFiles(const FoundRun& run, std::filesystem::path root)
    : folder_(run.folder),
      root_(std::move(root)),
      metrics_(folder_ / "metrics.jsonl", root_) {
  facts_.name = run.name;
}

bool RunFiles::refresh(const std::stop_token& stop) {
  bool changed = refresh_info();
  changed = refresh_config() || changed;
  changed = refresh_lengths() || changed;
  changed = metrics_.refresh(stop) || changed;
  const FileState maps = file_state(folder_ / "maps.json");
  if (maps != maps_state_) {
    maps_state_ = maps;
    maps_.reset();
    maps_warning_.clear();
    changed = true;
  }
  const FileState solution = file_state(folder_ / "solution.json");
  if (solution != solution_state_) {
    solution_state_ = solution;
    solution_.reset();
    solution_warning_.clear();
    changed = true;
  }
  if (!changed) return false;
  const FileState written = file_state(folder_ / "metrics.jsonl");
  facts_.updated = modified_text(
      written.modified > info_state_.modified ? written : info_state_);
  ++version_;
  return true;
}

bool RunFiles::refresh_info() {
  const std::filesystem::path path = folder_ / "run.json";
  const FileState state = file_state(path);
  if (state == info_state_ && (readable_ || !info_warning_.empty())) {
    return false;
  }
  info_state_ = state;
  info_warning_.clear();
  try {
    // Says whether it lies where it may. If it is exchanged after that, what is
    // read is still a run.json or refused, and none of it is shown as it is.
    open_file(path, root_);
    facts_.info = run::read_run_info(folder_);
    readable_ = true;
  } catch (const std::runtime_error& error) {
    readable_ = false;
    info_warning_ = error.what();
  }
  return true;
}

bool RunFiles::refresh_config() {
  const std::filesystem::path path = folder_ / "config.toml";
  const FileState state = file_state(path);
  if (state == config_state_) return false;
  config_state_ = state;
  facts_.config.clear();
  config_.reset();
  config_warning_.clear();
  try {
    const std::string text = read_file(path, kMaxConfigBytes, root_);
    facts_.config = valid_utf8(text);
    config_ = run::parse_run_config(text, "config.toml");
  } catch (const run::ConfigError&) {
    // Of another version, perhaps. It is shown all the same.
  } catch (const std::runtime_error& error) {
    config_warning_ = error.what();
  }
  return true;
}

bool RunFiles::refresh_lengths() {
  const std::filesystem::path path = folder_ / "lengths.json";
  const FileState state = file_state(path);
  if (state == lengths_state_) return false;
  lengths_state_ = state;
  facts_.lengths.reset();
  lengths_warning_.clear();
  if (!state.exists()) return true;
  try {
    facts_.lengths =
        run::parse_lengths(read_file(path, kMaxLengthsBytes, root_));
  } catch (const base::JsonError& error) {
    lengths_warning_ = fmt::format("{}: {}: the lengths are left out",
                                   path.string(), error.what());
  } catch (const std::runtime_error& error) {
    lengths_warning_ = error.what();
  }
  return true;
}

const Maps* RunFiles::maps() {
  if (!maps_ && maps_state_.exists() && maps_warning_.empty()) {
    const std::filesystem::path path = folder_ / "maps.json";
    try {
      maps_ = parse_maps(read_file(path, kMaxMapsBytes, root_));
    } catch (const base::JsonError& error) {
      maps_warning_ = fmt::format("{}: {}: the maps are left out",
                                  path.string(), error.what());
    } catch (const std::runtime_error& error) {
      maps_warning_ = error.what();
    }
  }
  return maps_ ? &*maps_ : nullptr;
}

const std::string* RunFiles::solution() {
  if (!solution_ && solution_state_.exists() && solution_warning_.empty()) {
    const std::filesystem::path path = folder_ / "solution.json";
    try {
      solution_ = solution_text(
          run::parse_solution(read_file(path, run::kMaxSolutionBytes, root_)));
    } catch (const base::JsonError& error) {
      solution_warning_ = fmt::format("{}: {}: the solution is left out",
                                      path.string(), error.what());
    } catch (const std::runtime_error& error) {
      solution_warning_ = error.what();
    }
  }
  return solution_ ? &*solution_ : nullptr;
}

std::vector<std::string> RunFiles::warnings() const {
  std::vector<std::string> all;
  if (!readable_) {
    all.push_back(info_warning_ + ": the run is left out");
    return all;
  }
  for (const std::string& warning :
       {config_warning_, metrics_.warning(), maps_warning_, lengths_warning_,
        solution_warning_}) {
    if (!warning.empty()) all.push_back(warning);
  }
  if (!config_state_.exists()) {
    all.push_back(fmt::format("{} has no config.toml", folder_.string()));
  }
  return all;
}

}  // namespace polyattn::report
