#include "train/run/arm.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/message.h"
#include "base/split.h"
#include "polyattn/activation.h"

namespace polyattn::run {
namespace {

// At commas outside of braces. Braces that do not match are left to
// parse_arm().
std::vector<std::string> split_arms(const std::string& text) {
  std::vector<std::string> parts(1);
  bool within = false;
  for (const char c : text) {
    if (c == '{' || c == '}') within = c == '{';
    if (c == ',' && !within) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

class ArmParser {
 public:
  ArmParser(const Config& base, const std::string& where, Problems& problems)
      : config_(base), where_(where), problems_(problems) {}

  GridSetting settings(const std::string& text) {
    for (const std::string& part : base::split_at_commas(text)) add(part);
    return std::move(settings_);
  }

 private:
  void add(const std::string& text);
  void refuse(const std::string& message) { problems_.add(where_, message); }

  Config config_;
  const std::string& where_;
  Problems& problems_;
  GridSetting settings_;
};

void ArmParser::add(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    refuse(
        fmt::format("{} in braces is not KEY=VALUE, for example "
                    "{{model.start=plain}}",
                    base::in_quotes(text)));
    return;
  }
  const Setting setting = parse_setting(text);
  const auto same = [&](const Setting& s) { return s.key == setting.key; };
  if (const char* reason = why_shared(setting.key)) {
    refuse(fmt::format("{} cannot be varied: {}", base::in_quotes(setting.key),
                       reason));
  } else if (std::any_of(settings_.begin(), settings_.end(), same)) {
    refuse(
        fmt::format("{} occurs twice in braces", base::in_quotes(setting.key)));
  } else if (apply_setting(config_, setting, where_, problems_)) {
    settings_.push_back(setting);
  }
}

}  // namespace

Config arm_config(const Config& base, const Arm& arm,
                  const GridSetting& setting) {
  Config config = with_setting(base, setting);
  config.model.activation = arm.activation;
  // What softmax cannot have, the polynomials beside it may.
  const ActivationKind kind = Activation::parse(arm.activation).kind;
  if (kind != ActivationKind::kPolynomial) {
    config.model.learned_coefficients = "none";
  }
  if (kind == ActivationKind::kSoftmax) {
    // It has no start to search, and its rows sum to 1: nothing to centre.
    config.model.center_values = base.model.center_values;
    config.model.start = base.model.start;
    config.model.start_factor = base.model.start_factor;
  }
  return with_setting(std::move(config), arm.settings);
}

Arm parse_arm(const std::string& text, const Config& base,
              const std::string& where, Problems& problems) {
  const std::string entry = base::trimmed(text);
  const std::size_t brace = entry.find('{');
  const std::string formula = base::trimmed(entry.substr(0, brace));
  const bool braced = brace != std::string::npos;
  const std::string braces = braced ? entry.substr(brace) : "";
  const auto count = [&](char c) {
    return std::count(entry.begin(), entry.end(), c);
  };
  if (count('{') != (braced ? 1 : 0) || count('}') != (braced ? 1 : 0) ||
      (braced && !braces.ends_with('}'))) {
    problems.add(where, fmt::format("the braces of {} do not match: a variant "
                                    "is FORMULA{{KEY=VALUE}}",
                                    base::in_quotes(entry)));
    return {};
  }
  if (formula.empty()) {
    problems.add(where, "there is an empty formula");
    return {};
  }
  Arm arm{Activation::parse(formula).to_string()};
  if (braced) {
    arm.settings = ArmParser(base, where, problems)
                       .settings(braces.substr(1, braces.size() - 2));
  }
  return arm;
}

void find_repeated_arms(const std::vector<Arm>& arms, const Config& base,
                        const std::string& where, Problems& problems) {
  std::vector<Config> configs;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    configs.push_back(arm_config(base, arms[i]));
    const auto same = static_cast<std::size_t>(
        std::find(configs.begin(), configs.end(), configs.back()) -
        configs.begin());
    if (same == i) continue;
    const std::string name = arms[i].name();
    const std::string other = arms[same].name();
    problems.add(where, name == other
                            ? fmt::format("{} occurs twice", name)
                            : fmt::format("{} is the same as {}", name, other));
  }
}

std::vector<Arm> parse_arms(const std::vector<std::string>& texts,
                            const Config& base) {
  const std::string where = "--activations";
  Problems problems;
  std::vector<Arm> arms;
  for (const std::string& text : texts) {
    for (const std::string& part : split_arms(text)) {
      arms.push_back(parse_arm(part, base, where, problems));
    }
  }
  if (arms.empty()) problems.add(where, "there is none");
  problems.check();
  find_repeated_arms(arms, base, where, problems);
  problems.check();
  return arms;
}

}  // namespace polyattn::run
