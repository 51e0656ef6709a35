// Folders, files and variables that are gone when a test ends.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "data/sets.h"

namespace polyattn::data::test {

class TestFolder {
 public:
  TestFolder() {
    std::string name = testing::TempDir() + "polyattn_data_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("cannot create " + name);
    }
    path_ = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const {
    return path_ / name;
  }

  // Creates the folders on the way, too.
  std::filesystem::path write(std::string_view name,
                              std::string_view content) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

 private:
  std::filesystem::path path_;
};

// An environment variable that has its old value back when this is gone.
class TestVariable {
 public:
  // Without a value it is unset.
  TestVariable(const char* name, const std::optional<std::string>& value)
      : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~TestVariable() { set(old_); }
  TestVariable(const TestVariable&) = delete;
  TestVariable& operator=(const TestVariable&) = delete;

 private:
  void set(const std::optional<std::string>& value) const {
    if (value) {
      ::setenv(name_, value->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> old_;
};

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The message of the DataError that the call ends with; empty without one.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

inline testing::AssertionResult has(std::string_view text,
                                    std::string_view part) {
  if (text.find(part) != std::string_view::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << "'" << part << "' is not in '" << text << "'";
}

}  // namespace polyattn::data::test
