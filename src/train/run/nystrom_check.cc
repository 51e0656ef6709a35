#include "train/run/nystrom_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "train/run/tasks.h"

namespace polyattn::run {
namespace {

// Of attention to all keys alone.
constexpr std::string_view kOfAllKeys[] = {
    "kv_heads",      "positions",   "qk_norm",    "learned_scale",
    "output_norm",   "output_gate", "short_conv", "learned_coefficients",
    "center_values", "norm_clamp",  "window"};

bool is_of_all_keys(std::string_view key) {
  return std::find(std::begin(kOfAllKeys), std::end(kOfAllKeys), key) !=
         std::end(kOfAllKeys);
}

}  // namespace

std::vector<BadValue> nystrom_problems(const Config& config) {
  if ((find_task(config.task.name)->kind & kSequences) == 0) return {};
  const Config plain;
  const ModelConfig& model = config.model;
  const bool nystrom = model.attention == "nystrom";
  std::vector<BadValue> bad;
  const auto refuse = [&](const Field& field, const std::string& message) {
    bad.push_back({&field, field.name() + message});
  };
  for (const Field& field : fields()) {
    if (field.section != "model") continue;
    const bool has_no_meaning =
        nystrom ? is_of_all_keys(field.key) : field.key.starts_with("landmark");
    const Value value = field.get(config);
    if (!has_no_meaning || value == field.get(plain)) continue;
    refuse(field, fmt::format(" is {}, but model.attention is {}",
                              value_text(value), model.attention));
  }
  if (!nystrom) return bad;
  if (model.landmark_conv != 0 && model.landmark_conv % 2 == 0) {
    refuse(*find_field("model", "landmark_conv"),
           fmt::format(" {} is neither 0 nor odd", model.landmark_conv));
  }
  const auto longest = longest_example(config.task);
  if (longest && model.landmarks > longest->tokens) {
    refuse(*find_field("model", "landmarks"),
           fmt::format(" {} are more than the {} tokens of {}", model.landmarks,
                       longest->tokens, longest->of));
  }
  return bad;
}

}  // namespace polyattn::run
