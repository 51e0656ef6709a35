#include "train/run/config.h"

#include <fmt/format.h>

#include <system_error>

#include "base/message.h"
#include "base/text_file.h"
#include "train/run/toml_reader.h"

namespace polyattn::run {
namespace {

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return std::string(
      text.substr(first, text.find_last_not_of(kBlanks) + 1 - first));
}

}  // namespace

Setting parse_setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  Setting setting;
  if (equals != std::string_view::npos) {
    setting.key = trimmed(text.substr(0, equals));
    setting.value = trimmed(text.substr(equals + 1));
  }
  if (setting.key.empty()) {
    throw ConfigError(fmt::format(
        "[config] --set {} is not KEY=VALUE, for example train.lr=3e-4",
        base::in_quotes(text)));
  }
  return setting;
}

Config read_config(const std::filesystem::path& path,
                   const std::vector<Setting>& settings) {
  std::string text;
  try {
    text = base::read_text_file(path, kMaxTomlBytes);
  } catch (const std::runtime_error& error) {
    throw ConfigError(fmt::format("[config] {}", error.what()));
  }
  return parse_config(text, path.string(), settings);
}

void write_config(const std::filesystem::path& path, const Config& config) {
  try {
    base::write_text_file(path, config_text(config));
  } catch (const std::system_error& error) {
    throw ConfigError(fmt::format("[config] {}", error.what()));
  }
}

}  // namespace polyattn::run
