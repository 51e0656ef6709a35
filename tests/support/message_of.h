// What a call is refused with.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace polyattn::test {

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

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace polyattn::test
