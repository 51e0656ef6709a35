// A search for settings: the cross product of the values of some keys, tried
// for every activation alike and chosen by validation data.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "train/run/comparison.h"
#include "train/run/config.h"
#include "train/run/problems.h"
#include "train/run/records.h"

namespace polyattn::run {

struct GridAxis {
  std::string key;                  // train.lr
  std::vector<std::string> values;  // as they were typed; two at least

  bool operator==(const GridAxis&) const = default;
};

// "train.lr=5e-4,1e-3" is an axis. Says at `where` all that is wrong: a key
// that is not known or cannot be searched, or occurs twice; fewer than two
// values, one twice, one of the wrong type. Ranges are for check_config().
std::vector<GridAxis> parse_grid(const std::vector<std::string>& texts,
                                 const Config& base, const std::string& where,
                                 Problems& problems);
// Of --grid. Throws ConfigError with all that is wrong.
std::vector<GridAxis> parse_grid(const std::vector<std::string>& texts,
                                 const Config& base);

// The cross product, the last axis fastest: a setting for each axis.
using GridSetting = std::vector<Setting>;
std::vector<GridSetting> settings_of(const std::vector<GridAxis>& axes);

// "train.lr=5e-4, model.norm=rms"
std::string setting_text(const GridSetting& setting);

// What has been checked. Throws ConfigError otherwise.
Config with_setting(Config config, const GridSetting& setting);

// A run of the search, and by number the setting that it had.
struct GridRun {
  std::size_t setting = 0;
  RunInfo info;
};

struct GridCell {
  std::size_t setting = 0;
  base::Sample figure;  // over the seeds; none if one of them diverged
  int diverged = 0;
};

struct GridRow {
  std::string activation;
  std::string variant;  // of the activation; empty: none
  std::vector<GridCell> cells;
  std::size_t chosen = 0;  // of the cells

  std::string name() const { return arm_name(activation, variant); }
};

struct GridPlan {
  std::vector<GridAxis> axes;
  int seeds = 1;
  double validation = 0;  // share that is held out

  bool operator==(const GridPlan&) const = default;
};

struct GridOutcome {
  GridPlan plan;
  std::string task;
  Figure figure = Figure::kAccuracy;
  std::vector<GridRow> rows;  // in the order of their first runs
};

// For each activation and variant the setting with the best mean over the
// seeds, the first of those that are equal; one that diverged is the worst.
// `runs` are finished or diverged, and there is one at least.
GridOutcome choose_settings(const GridPlan& plan,
                            const std::vector<GridRun>& runs);

std::string grid_table(const GridOutcome& outcome);
base::Json grid_json(const GridOutcome& outcome);

// FOLDER/grid.json: first the plan, then with what was chosen. Throws
// std::runtime_error if the file has another plan, has chosen otherwise, or is
// damaged.
void check_grid_file(const std::filesystem::path& folder,
                     const GridOutcome& outcome);
void write_grid_file(const std::filesystem::path& folder,
                     const GridOutcome& outcome);

}  // namespace polyattn::run
