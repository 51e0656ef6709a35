#include "train/run/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/message.h"
#include "base/split.h"
#include "train/run/problems.h"

namespace polyattn::run {
namespace {

constexpr const char* kGridSource = "--grid";
// Nobody waits for more; and products stay small.
constexpr std::size_t kMaxSettings = 1000;

bool is_key(const std::string& name) {
  const auto all = fields();
  return std::any_of(all.begin(), all.end(),
                     [&](const Field& field) { return field.name() == name; });
}

class GridParser {
 public:
  GridParser(const Config& base, const std::string& where, Problems& problems)
      : base_(base), where_(where), problems_(problems) {}

  std::vector<GridAxis> parse(const std::vector<std::string>& texts);

 private:
  void add(const std::string& text);
  void check_values(const GridAxis& axis);
  void refuse(const std::string& message) { problems_.add(where_, message); }

  const Config& base_;
  const std::string& where_;
  Problems& problems_;
  std::vector<GridAxis> axes_;
};

void GridParser::check_values(const GridAxis& axis) {
  if (axis.values.size() < 2 && is_key(axis.key)) {
    refuse(
        fmt::format("{} has one value, must have two at least: --set "
                    "changes a single one",
                    axis.key));
  }
  std::vector<Config> seen;
  for (const std::string& value : axis.values) {
    if (value.empty()) {
      refuse(fmt::format("{} has an empty value", axis.key));
      continue;
    }
    Config config = base_;
    if (!apply_setting(config, {axis.key, value}, where_, problems_)) {
      if (!is_key(axis.key)) return;  // said once
      continue;
    }
    if (std::find(seen.begin(), seen.end(), config) != seen.end()) {
      refuse(fmt::format("{} has the value {} twice", axis.key,
                         base::in_quotes(value)));
    }
    seen.push_back(config);
  }
}

void GridParser::add(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    refuse(
        fmt::format("{} is not KEY=VALUE,VALUE, for example "
                    "train.lr=5e-4,1e-3",
                    base::in_quotes(text)));
    return;
  }
  GridAxis axis{base::trimmed(text.substr(0, equals)),
                base::split_at_commas(text.substr(equals + 1))};
  const auto same = [&](const GridAxis& a) { return a.key == axis.key; };
  if (const char* reason = why_shared(axis.key)) {
    refuse(fmt::format("{} cannot be searched: {}", base::in_quotes(axis.key),
                       reason));
  } else if (std::any_of(axes_.begin(), axes_.end(), same)) {
    refuse(fmt::format("{} occurs twice", base::in_quotes(axis.key)));
  } else {
    check_values(axis);
    axes_.push_back(std::move(axis));
  }
}

std::vector<GridAxis> GridParser::parse(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) add(text);
  std::size_t count = 1;
  for (const GridAxis& axis : axes_) {
    count *= std::min(axis.values.size(), kMaxSettings + 1);
    if (count <= kMaxSettings) continue;
    refuse(fmt::format("there are more than {} settings", kMaxSettings));
    break;
  }
  return std::move(axes_);
}

}  // namespace

std::vector<GridAxis> parse_grid(const std::vector<std::string>& texts,
                                 const Config& base, const std::string& where,
                                 Problems& problems) {
  return GridParser(base, where, problems).parse(texts);
}

std::vector<GridAxis> parse_grid(const std::vector<std::string>& texts,
                                 const Config& base) {
  Problems problems;
  auto axes = parse_grid(texts, base, kGridSource, problems);
  problems.check();
  return axes;
}

std::vector<GridSetting> settings_of(const std::vector<GridAxis>& axes) {
  std::vector<GridSetting> settings = {{}};
  for (const GridAxis& axis : axes) {
    std::vector<GridSetting> longer;
    for (const GridSetting& setting : settings) {
      for (const std::string& value : axis.values) {
        longer.push_back(setting);
        longer.back().push_back({axis.key, value});
      }
    }
    settings = std::move(longer);
  }
  return settings;
}

std::string setting_text(const GridSetting& setting) {
  std::string text;
  for (const auto& [key, value] : setting) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, value);
  }
  return text;
}

Config with_setting(Config config, const GridSetting& setting) {
  Problems problems;
  for (const Setting& part : setting) {
    apply_setting(config, part, kGridSource, problems);
  }
  problems.check();
  return config;
}

}  // namespace polyattn::run
