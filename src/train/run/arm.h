// What a comparison trains: a formula, and with it the settings in which it
// differs from the others, as x^3/sqrt(N){model.start=plain}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/run/config.h"
#include "train/run/grid.h"
#include "train/run/problems.h"

namespace polyattn::run {

struct Arm {
  std::string activation;     // in canonical form
  GridSetting settings = {};  // as they were typed; none: no variant

  std::string variant() const { return setting_text(settings); }
  std::string name() const { return arm_name(activation, variant()); }
};

// The config of an arm, under a setting of a search if there is one.
Config arm_config(const Config& base, const Arm& arm,
                  const GridSetting& setting = {});

// One arm. What is wrong with its braces and settings is said at `where`: a key
// that is unknown, occurs twice or must be the same for all; a value of the
// wrong type. Ranges are for check_config(). Throws FormulaError.
Arm parse_arm(const std::string& text, const Config& base,
              const std::string& where, Problems& problems);

// Says which of the arms are the same, by their configs.
void find_repeated_arms(const std::vector<Arm>& arms, const Config& base,
                        const std::string& where, Problems& problems);

// Of --activations: each text is split at the commas that are outside of
// braces. Throws FormulaError, and ConfigError with all else that is wrong.
std::vector<Arm> parse_arms(const std::vector<std::string>& texts,
                            const Config& base);

}  // namespace polyattn::run
