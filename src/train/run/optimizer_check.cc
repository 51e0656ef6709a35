#include "train/run/optimizer_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "train/run/tasks.h"

namespace polyattn::run {
namespace {

struct KeyName {
  std::string_view section, key;
};

// They draw other numbers in each step, or change what is evaluated, or round
// the loss more than a line search bears. Off, these are 0, 1 or "none".
constexpr KeyName kUnfit[] = {
    {"model", "dropout"},   {"model", "attention_dropout"},
    {"model", "drop_path"}, {"train", "accumulate"},
    {"train", "ema"},       {"train", "autocast"}};

// L-BFGS finds the length of its steps by itself.
constexpr KeyName kOfAdam[] = {{"train", "lr"},     {"train", "final_lr"},
                               {"train", "warmup"}, {"train", "weight_decay"},
                               {"train", "beta1"},  {"train", "beta2"},
                               {"train", "eps"},    {"train", "clip"}};

constexpr KeyName kOfLbfgs[] = {{"train", "history_size"},
                                {"train", "line_search_steps"},
                                {"train", "adam_steps"}};

class OptimizerChecker {
 public:
  OptimizerChecker(const Config& config, const Config& defaults)
      : config_(config), defaults_(defaults) {}

  std::vector<BadValue> run() {
    const TrainConfig& train = config_.train;
    if (train.optimizer != "lbfgs") {
      leave_out(kOfLbfgs, "train.optimizer is adamw");
      return bad_;
    }
    const Config off;
    for (const auto& [section, key] : kUnfit) {
      const Field& field = *find_field(section, key);
      const Value value = field.get(config_);
      if (value == field.get(off)) continue;
      refuse(field, fmt::format(
                        " is {}, but train.optimizer is lbfgs, which needs the "
                        "same loss in every step: leave it at {}",
                        value_text(value), value_text(field.get(off))));
    }
    if (train.adam_steps == 0) {
      leave_out(kOfAdam,
                "train.optimizer is lbfgs, which finds the length of its steps "
                "by itself, and train.adam_steps is 0");
    } else if (train.steps > 0 && train.adam_steps >= train.steps) {
      refuse(*find_field("train", "adam_steps"),
             fmt::format(" {} leave L-BFGS none of the {} of train.steps",
                         train.adam_steps, train.steps));
    }
    return bad_;
  }

 private:
  void refuse(const Field& field, const std::string& message) {
    bad_.push_back({&field, field.name() + message});
  }

  // A choice that would be ignored.
  template <std::size_t kCount>
  void leave_out(const KeyName (&keys)[kCount], std::string_view why) {
    for (const auto& [section, key] : keys) {
      const Field& field = *find_field(section, key);
      const Value value = field.get(config_);
      if (value == field.get(defaults_)) continue;
      refuse(field, fmt::format(" is {}, but {}: leave it out",
                                value_text(value), why));
    }
  }

  const Config& config_;
  const Config& defaults_;
  std::vector<BadValue> bad_;
};

}  // namespace

std::vector<BadValue> optimizer_problems(const Config& config,
                                         const Config& defaults) {
  return OptimizerChecker(config, defaults).run();
}

}  // namespace polyattn::run
