// The files of one run, read again as they change.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "report/files.h"
#include "report/find_runs.h"
#include "report/maps.h"
#include "report/metrics_file.h"
#include "train/run/config.h"
#include "train/run/lengths.h"
#include "train/run/records.h"

namespace polyattn::report {

// What is shown of a run, beside its curves.
struct RunFacts {
  std::string name;
  run::RunInfo info;
  std::string config;   // the text of config.toml, UTF-8
  std::string updated;  // ISO 8601, UTC: when a record was last written
  std::optional<run::Lengths> lengths;
};

class RunFiles {
 public:
  // `root` as open_file() takes it.
  RunFiles(const FoundRun& run, std::filesystem::path root);

  // True if anything is new. Never throws for what is in the files: warnings()
  // says what is wrong with them.
  bool refresh(const std::stop_token& stop = {});

  // Whether there is a run.json that could be read; without it there is no run.
  bool readable() const { return readable_; }

  const std::filesystem::path& folder() const { return folder_; }
  const std::filesystem::path& root() const { return root_; }
  const RunFacts& facts() const { return facts_; }
  const RunSeries& series() const { return metrics_.series(); }
  // None if config.toml is not what this version of polyattn reads.
  const std::optional<run::Config>& config() const { return config_; }

  // Read when it is first asked for, for it is large and most runs need not
  // show theirs. Null if there is none that is right.
  const Maps* maps();
  // Gives its memory back.
  void forget_maps() { maps_.reset(); }

  // The text of solution_text(), read and kept like the maps.
  const std::string* solution();
  void forget_solution() { solution_.reset(); }

  // Grows with every change.
  std::int64_t version() const { return version_; }

  std::vector<std::string> warnings() const;

 private:
  bool refresh_info();
  bool refresh_config();
  bool refresh_lengths();

  std::filesystem::path folder_;
  std::filesystem::path root_;
  RunFacts facts_;
  std::optional<run::Config> config_;
  MetricsFile metrics_;
  std::optional<Maps> maps_;
  std::optional<std::string> solution_;
  FileState info_state_, config_state_, maps_state_, lengths_state_,
      solution_state_;
  std::string info_warning_, config_warning_, maps_warning_, lengths_warning_,
      solution_warning_;
  bool readable_ = false;
  std::int64_t version_ = 0;
};

}  // namespace polyattn::report
