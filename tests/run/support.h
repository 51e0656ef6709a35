// Files and messages for the tests of runs.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "run/config.h"

namespace polyattn::run::test {

// A folder that is gone when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = testing::TempDir() + "polyattn_run_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::filesystem::filesystem_error(
          "mkdtemp", name, std::error_code(errno, std::generic_category()));
    }
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const {
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::filesystem::path& path,
                       std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::vector<Setting> settings_of(const std::vector<std::string>& texts) {
  std::vector<Setting> settings;
  settings.reserve(texts.size());
  for (const std::string& text : texts) settings.push_back(parse_setting(text));
  return settings;
}

// The message of the exception of this type; empty if there is none.
template <typename Error>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace polyattn::run::test
