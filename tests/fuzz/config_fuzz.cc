// Any text either is a config or throws ConfigError, never anything else; a
// message is text of bounded length; and a config that is accepted is right,
// and printed again it is the same.
//
// The input is split at the first zero byte: the text of a file, and a setting.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "train/run/config.h"

namespace {

using polyattn::run::Config;
using polyattn::run::ConfigError;

void require(bool condition, const char* message, std::string_view detail) {
  if (condition) return;
  std::fprintf(stderr, "%s\n%.*s\n", message, static_cast<int>(detail.size()),
               detail.data());
  std::abort();
}

void check_accepted(const Config& config) {
  try {
    polyattn::run::check_config(config);
    const std::string text = polyattn::run::config_text(config);
    const Config again = polyattn::run::parse_config(text, "again");
    require(again == config, "printed again it differs", text);
    require(polyattn::run::config_text(again) == text, "not stable", text);
  } catch (const ConfigError& error) {
    require(false, "accepted, but not when printed again", error.what());
  }
}

void check_error(const ConfigError& error) {
  const std::string_view what = error.what();
  require(what.starts_with("[config] "), "message without its mark", what);
  // Ten problems at most, each with a few texts that are cut short, or with a
  // formula of a thousand bytes.
  require(what.size() < 12000, "a message of any length", what);
  require(std::none_of(what.begin(), what.end(),
                       [](char c) {
                         return (c >= 0 && c < ' ' && c != '\n') || c == 0x7f;
                       }),
          "control characters in a message", what);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), size);
  try {
    std::vector<polyattn::run::Setting> settings;
    if (end < size) {
      settings.push_back(polyattn::run::parse_setting(input.substr(end + 1)));
    }
    check_accepted(
        polyattn::run::parse_config(input.substr(0, end), "fuzz", settings));
  } catch (const ConfigError& error) {
    check_error(error);
  }
  return 0;
}
