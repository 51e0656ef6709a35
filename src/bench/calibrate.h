// `polyattn bench calibrate`: what dense and linear attention cost on this
// machine, measured now and kept for the commands that come (polyattn/plan.h).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "polyattn/plan.h"

namespace polyattn::bench {

struct Calibration {
  std::optional<PathCosts> before;  // none if no file of this machine was there
  PathCosts after;
  std::string file;      // empty: there is no folder for it
  bool written = false;  // false: kept nowhere
  double seconds = 0;    // that measuring took
};

Calibration calibrate();

std::string calibration_text(const Calibration& calibration);
nlohmann::ordered_json calibration_json(const Calibration& calibration);

}  // namespace polyattn::bench
