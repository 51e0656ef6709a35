// Variables, bytes and messages for the tests of data sets.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/sets.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace polyattn::data::test {

using polyattn::test::read_text;
using polyattn::test::TemporaryFolder;

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

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The message of the DataError that the call ends with; empty without one.
inline std::string error_of(const std::function<void()>& call) {
  return polyattn::test::message_of<DataError>(call);
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
