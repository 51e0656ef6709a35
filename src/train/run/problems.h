// What is wrong with a config, all of it, as one ConfigError.
#pragma once

#include <cstddef>
#include <string>
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

  // Throws ConfigError unless empty.
  void check() const;

 private:
  std::vector<std::string> messages_;
  std::size_t count_ = 0;
};

// A problem with a value; the message begins with the key.
struct BadValue {
  const Field* field = nullptr;
  std::string message;
};

// In config_check.cc. Ranges and choices first; only if they hold, what must
// agree.
std::vector<BadValue> find_bad_values(const Config& config);

}  // namespace polyattn::run
