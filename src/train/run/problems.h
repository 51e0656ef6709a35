// What is wrong with a config, all of it, as one ConfigError.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/config.h"
#include "train/run/fields.h"

namespace polyattn::run {

class Problems {
 public:
  // `where` is "a.toml:3:5", "--set", or empty.
  void add(const std::string& where, const std::string& message);

  bool empty() const { return count_ == 0; }
  // More will only be counted, so their messages need no care.
  bool enough() const;

  std::size_t count() const { return count_; }

  // Throws ConfigError unless empty. Its message begins with "[subject]".
  void check(std::string_view subject = "config") const;

 private:
  std::vector<std::string> messages_;
  std::size_t count_ = 0;
};

// "a.toml:3:5"; without a line the source alone.
std::string place_text(std::string_view source, int line, int column);

// A problem with a value; the message begins with the key.
struct BadValue {
  const Field* field = nullptr;
  std::string message;
};

// In overlay.cc. Changes one key, or says at `where` what is wrong with it. The
// field, or nullptr.
const Field* apply_setting(Config& config, const Setting& setting,
                           const std::string& where, Problems& problems);

// In config_check.cc. Ranges and choices first; only if they hold, what must
// agree.
std::vector<BadValue> find_bad_values(const Config& config);

}  // namespace polyattn::run
