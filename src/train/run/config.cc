#include "train/run/config.h"

#include <fmt/format.h>

#include <system_error>

#include "base/message.h"
#include "base/split.h"
#include "base/text_file.h"
#include "train/run/toml_reader.h"

namespace polyattn::run {
std::string read_toml_file(const std::filesystem::path& path) {
  try {
    return base::read_text_file(path, kMaxTomlBytes);
  } catch (const std::runtime_error& error) {
    throw ConfigError(fmt::format("[config] {}", error.what()));
  }
}

Setting parse_setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  Setting setting;
  if (equals != std::string_view::npos) {
    setting.key = base::trimmed(text.substr(0, equals));
    setting.value = base::trimmed(text.substr(equals + 1));
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
  return parse_config(read_toml_file(path), path.string(), settings);
}

Config read_run_config(const std::filesystem::path& folder,
                       const std::vector<Setting>& settings) {
  const std::filesystem::path path = folder / "config.toml";
  return parse_run_config(read_toml_file(path), path.string(), settings);
}

void write_config(const std::filesystem::path& path, const Config& config) {
  try {
    base::write_text_file(path, config_text(config));
  } catch (const std::system_error& error) {
    throw ConfigError(fmt::format("[config] {}", error.what()));
  }
}

}  // namespace polyattn::run
