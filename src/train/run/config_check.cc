// What a config must fulfil beyond the types of its values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/message.h"
#include "base/utf8.h"
#include "polyattn/activation.h"
#include "train/run/lengths.h"
#include "train/run/models.h"
#include "train/run/nystrom_check.h"
#include "train/run/optimizer_check.h"
#include "train/run/problems.h"
#include "train/run/suggest.h"
#include "train/run/tokenizer.h"

namespace polyattn::run {
namespace {

constexpr std::size_t kLongestPath = 4096;

class Checker {
 public:
  explicit Checker(const Config& config)
      : config_(config),
        task_(find_task(config.task.name)),
        model_(find_model(config.model.name)) {}

  std::vector<BadValue> run();

 private:
  template <typename... Values>
  void refuse(const char* section, const char* key,
              fmt::format_string<const Values&...> format,
              const Values&... values) {
    const Field* const field = find_field(section, key);
    refuse(*field, fmt::format(format, values...));
  }
  void refuse(const Field& field, const std::string& message) {
    bad_.push_back({&field, field.name() + message});
  }

  void check_number(const Field& field, double value);
  void check_string(const Field& field, const std::string& value);
  void check_value(const Field& field);
  bool knows_model();
  void check_heeded(const Field& field, const Config& defaults);
  bool check_sizes_of_name(const Field& field, const Config& defaults);
  void check_activation();
  void check_sizes();
  void check_images();
  void check_stream(const Config& defaults);
  void check_augmentation();
  void check_norm_clamp();
  void check_tokenizer();
  void check_sequences();
  void check_window();
  void check_decay();
  void check_distillation();
  void check_lengths();
  void check_physics();
  void check_probe(std::int64_t length, const char* key);

  const Config& config_;
  const TaskEntry* task_;
  const ModelEntry* model_;
  std::vector<BadValue> bad_;
};

void Checker::check_number(const Field& field, double value) {
  if (field.range.contains(value) && std::isfinite(value)) return;
  const std::string allowed = field.range.to_string();
  refuse(field,
         fmt::format(
             " is {}, must be {}", value_text(field.get(config_)),
             allowed.empty() || !std::isfinite(value) ? "finite" : allowed));
}

bool is_plain_text(const std::string& text) {
  const bool controls = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  return !controls && base::utf8_prefix(text) == text.size();
}

void Checker::check_string(const Field& field, const std::string& value) {
  const auto& choices = field.choices;
  if (choices.empty()) {
    if (value.size() > kLongestPath) {
      refuse(field, fmt::format(" has {} bytes, must have {} at most",
                                value.size(), kLongestPath));
    } else if (!is_plain_text(value)) {
      refuse(field, fmt::format(" is {}, must be UTF-8 without control "
                                "characters",
                                base::in_quotes(value)));
    }
    return;
  }
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  const auto near = nearest(value, choices);
  refuse(field,
         fmt::format(" is {}, must be one of {}{}", base::in_quotes(value),
                     choices_text(field),
                     near ? fmt::format("; did you mean {}?", *near) : ""));
}

void Checker::check_value(const Field& field) {
  const Value value = field.get(config_);
  if (const auto* text = std::get_if<std::string>(&value)) {
    check_string(field, *text);
  } else if (const auto* number = std::get_if<double>(&value)) {
    check_number(field, *number);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    check_number(field, static_cast<double>(*integer));
  }
}

// Without a model the keys that it decides cannot be judged.
bool Checker::knows_model() {
  const std::string& name = config_.model.name;
  if (model_ != nullptr && (model_->tasks & task_->kind) != 0) return true;
  refuse("model", "name", " is {}, which is no model of {}: {}",
         base::in_quotes(name), task_->name, advice_on_model(name, *task_));
  return false;
}

// A choice that would be ignored is one that somebody believes was made.
void Checker::check_heeded(const Field& field, const Config& defaults) {
  if ((field.tasks & task_->kind) != 0) return;
  if (field.get(config_) == field.get(defaults)) return;
  std::string heeding;
  for (const TaskEntry& task : kTasks) {
    if ((task.kind & field.tasks) == 0) continue;
    if (!heeding.empty()) heeding += ", ";
    heeding += task.name;
  }
  refuse(field, fmt::format(" means nothing to the task {} (only to {}): "
                            "leave it out",
                            task_->name, heeding));
}

// Nor may anybody believe that a named size has another width.
bool Checker::check_sizes_of_name(const Field& field, const Config& defaults) {
  if (field.section != "model" || heeds(*model_, field.key)) return true;
  const Value value = field.get(config_), own = field.get(defaults);
  if (value == own) return true;
  if (model_->family == ModelFamily::kPinn) {
    refuse(field, fmt::format(" means nothing to the model {}, which has no "
                              "attention: leave it at {}",
                              model_->name, value_text(own)));
    return false;
  }
  refuse(field, fmt::format(" is {}, but the model {} has {}: leave it out",
                            value_text(value), model_->name, value_text(own)));
  return false;
}

// Three lines, the last with a caret: kept below each other, and indented.
std::string indented(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  return result;
}

void Checker::check_activation() {
  const std::string& formula = config_.model.activation;
  Activation activation;
  try {
    activation = Activation::parse(formula);
  } catch (const FormulaError& error) {
    refuse("model", "activation", ": {}", indented(error.what()));
    return;
  }
  for (int i = 0; i <= activation.degree; ++i) {
    const double c = activation.coefficient[static_cast<std::size_t>(i)];
    if (c != 0 && static_cast<float>(c) == 0) {
      refuse("model", "activation",
             " is {}, whose coefficient {:.6g} of x^{} is zero in f32", formula,
             c, i);
    }
  }
  if (activation.gain != 0 && static_cast<float>(activation.gain) == 0) {
    refuse("model", "activation", " is {}, whose factor {:.6g} is zero in f32",
           formula, activation.gain);
  }
  if (config_.model.learned_coefficients != "none" &&
      activation.kind != ActivationKind::kPolynomial) {
    refuse("model", "learned_coefficients",
           " is {}, but model.activation {} is no polynomial",
           config_.model.learned_coefficients, formula);
  }
}

void Checker::check_sizes() {
  const ModelConfig& m = config_.model;
  if (m.dim % m.heads != 0) {
    refuse("model", "dim", " {} is not a multiple of model.heads {}", m.dim,
           m.heads);
  } else if (m.positions == "rotary" && m.dim / m.heads < 2) {
    refuse("model", "positions",
           " is rotary, which needs heads at least 2 wide, but model.dim / "
           "model.heads is {}",
           m.dim / m.heads);
  }
  if (m.kv_heads != 0 && m.heads % m.kv_heads != 0) {
    refuse("model", "heads", " {} is not a multiple of model.kv_heads {}",
           m.heads, m.kv_heads);
  }
  if (config_.task.min_length > config_.task.max_length) {
    refuse("task", "min_length", " {} is above task.max_length {}",
           config_.task.min_length, config_.task.max_length);
  }
  if (config_.train.steps == 0 && config_.train.epochs == 0) {
    refuse("train", "epochs",
           " and train.steps are both 0: one must be above 0");
  }
}

void Checker::check_images() {
  if (task_->kind != kImages) return;
  const std::int64_t window = config_.model.short_conv;
  if (window != 0 && window != 3) {
    refuse("model", "short_conv", " {} is neither 0 nor 3, for images", window);
  }
  const std::int64_t patch = config_.model.patch;
  const std::int64_t side =
      task_->image_side == 0 ? config_.task.image_size : task_->image_side;
  if (config_.task.path.empty() && side < model_->sizes.least_side) {
    refuse("model", "name",
           " is {}, whose images have {} pixels or more, but those of {} have "
           "{}",
           model_->name, model_->sizes.least_side, task_->name, side);
  }
  if (task_->image_side == 0) {
    if (config_.task.image_size % patch != 0) {
      refuse("model", "patch", " {} does not divide task.image_size {}", patch,
             config_.task.image_size);
    }
  } else if (config_.task.path.empty() && task_->image_side % patch != 0) {
    refuse("model", "patch", " {} does not divide the {} pixels of {}", patch,
           task_->image_side, task_->name);
  }
}

void Checker::check_stream(const Config& defaults) {
  const TaskConfig& task = config_.task;
  if (task_->kind != kImages) return;
  if (task.stream && task_->image_side != 0) {
    refuse("task", "stream", " is true, but {} is no folder of images",
           task_->name);
  } else if (!task.stream && defaults.task.stream) {
    refuse("task", "stream", " is false, but {} is always streamed",
           task_->name);
  }
  if (!task.stream && task.resize != 0) {
    refuse("task", "resize", " is {}, but task.stream is false", task.resize);
  } else if (task.resize != 0 && task.resize < task.image_size) {
    refuse("task", "resize", " {} is below task.image_size {}", task.resize,
           task.image_size);
  }
}

void Checker::check_augmentation() {
  const AugmentConfig& a = config_.augment;
  const AugmentConfig defaults;
  const std::string& policy = a.auto_augment;
  const bool counted = policy == "ra" || policy == "rand-inc";
  if (!counted && a.operations != defaults.operations) {
    refuse("augment", "operations", " is {}, but augment.auto_augment is {}",
           a.operations, policy);
  }
  if (!counted && a.magnitude != defaults.magnitude) {
    refuse("augment", "magnitude", " is {}, but augment.auto_augment is {}",
           a.magnitude, policy);
  } else if (policy == "ra" && a.magnitude != std::floor(a.magnitude)) {
    refuse("augment", "magnitude", " is {}, must be an integer for ra",
           a.magnitude);
  } else if (policy == "rand-inc" && a.magnitude > 10) {
    refuse("augment", "magnitude", " is {}, must be from 0 to 10 for rand-inc",
           a.magnitude);
  }
  if (policy != "rand-inc" && a.magnitude_std != 0) {
    refuse("augment", "magnitude_std", " is {}, but augment.auto_augment is {}",
           a.magnitude_std, policy);
  }
  if (a.crop_scale == 0 && a.crop_ratio != defaults.crop_ratio) {
    refuse("augment", "crop_ratio", " is {}, but augment.crop_scale is 0",
           a.crop_ratio);
  }
  if (a.erase == 0 && a.erase_value != defaults.erase_value) {
    refuse("augment", "erase_value", " is {}, but augment.erase is 0",
           a.erase_value);
  }
}

void Checker::check_norm_clamp() {
  const std::string& clamp = config_.model.norm_clamp;
  if (clamp == "none" && config_.model.norm_factor != 1) {
    refuse("model", "norm_factor", " is {}, but model.norm_clamp is none",
           config_.model.norm_factor);
  }
  if (clamp != "penalty" &&
      config_.train.norm_penalty != TrainConfig().norm_penalty) {
    refuse("train", "norm_penalty", " is {}, but model.norm_clamp is {}",
           config_.train.norm_penalty, clamp);
  }
}

void Checker::check_tokenizer() {
  try {
    parse_tokenizer(config_.task.tokenizer);
  } catch (const std::invalid_argument& error) {
    refuse("task", "tokenizer", " {} {}",
           base::in_quotes(config_.task.tokenizer), std::string(error.what()));
  }
}

void Checker::check_sequences() {
  const ModelConfig& m = config_.model;
  if (task_->kind == kImages && m.pooling == "padded") {
    refuse("model", "pooling", " is padded, which is for sequences: take mean");
  }
  if ((task_->kind & kSequences) == 0) return;
  if (m.pooling == "padded" && m.positions != "learned") {
    refuse("model", "pooling",
           " is padded, but model.positions is {}: learned ones say how long a "
           "padded sequence is",
           m.positions);
  }
  const auto longest = longest_example(config_.task);
  if (model_->options.empty() || !longest) return;
  const std::int64_t positions = lra_task(task_->kind).positions;
  if (longest->tokens > positions) {
    refuse("model", "name",
           " is {}, which has {} positions of {}, but {} is {}", m.name,
           positions, task_->name, longest->of, longest->tokens);
  }
}

void Checker::check_window() {
  const ModelConfig& m = config_.model;
  if (m.window == 0) return;
  const auto longest = longest_example(config_.task);
  if (longest && m.window > longest->tokens) {
    refuse("model", "window",
           " {} is longer than the text, {} {}: leave it out", m.window,
           longest->of, longest->tokens);
  }
  if (m.norm_clamp != "none") {
    refuse("model", "norm_clamp", " is {}, but model.window is {}",
           m.norm_clamp, m.window);
  }
  if ((task_->kind & kSequences) != 0 && m.pooling == "class" &&
      m.activation == "softmax") {
    refuse("model", "window",
           " is {}, in which a class token would see the first rows alone: "
           "model.pooling must be mean for softmax",
           m.window);
  }
}

void Checker::check_decay() {
  const ModelConfig& model = config_.model;
  if (model.decay == "none") return;
  try {
    if (Activation::parse(model.activation).kind !=
        ActivationKind::kPolynomial) {
      refuse("model", "decay",
             " is {}, but model.activation {} is no polynomial", model.decay,
             model.activation);
    }
  } catch (const FormulaError&) {
    return;  // model.activation is refused by its own check
  }
  if (model.center_values) {
    refuse("model", "decay", " is {}, but model.center_values is true",
           model.decay);
  }
  if (model.attention_dropout > 0) {
    refuse("model", "decay", " is {}, but model.attention_dropout is {}",
           model.decay, model.attention_dropout);
  }
}

void Checker::check_distillation() {
  const TrainConfig& train = config_.train;
  const TrainConfig unchosen;
  if (!train.teacher.empty() && !model_->distilled) {
    refuse("train", "teacher",
           " is {}, but the model {} has no logits to learn from it: take one "
           "whose name ends in -distilled, or XCiT",
           base::in_quotes(train.teacher), model_->name);
  }
  if (train.teacher.empty() && train.distillation != unchosen.distillation) {
    refuse("train", "distillation", " is {}, but there is no train.teacher",
           train.distillation);
  }
  if (train.teacher.empty() &&
      train.distillation_alpha != unchosen.distillation_alpha) {
    refuse("train", "distillation_alpha",
           " is {}, but there is no train.teacher", train.distillation_alpha);
  }
  if (train.distillation != "soft" &&
      train.distillation_temperature != unchosen.distillation_temperature) {
    refuse("train", "distillation_temperature",
           " is {}, but train.distillation is {}",
           train.distillation_temperature, train.distillation);
  }
}

// `key` says where the length comes from.
void Checker::check_probe(std::int64_t length, const char* key) {
  if ((task_->kind & kProbes) == 0) return;
  const char* const section =
      std::string_view(key) == "lengths" ? "record" : "task";
  if (length % 2 != 0) {
    refuse(section, key, " {} is odd: a probe has an even length", length);
  } else if (task_->kind == kRecall && 4 * config_.task.pairs > length) {
    refuse(section, key,
           " {} has no room for task.pairs {} and as many questions, which "
           "take {}",
           length, config_.task.pairs, 4 * config_.task.pairs);
  }
}

void Checker::check_lengths() {
  const std::string& text = config_.record.lengths;
  if (text.empty()) return;
  try {
    const std::vector<std::int64_t> lengths = parse_length_list(text);
    const bool probe = (task_->kind & kProbes) != 0;
    const std::int64_t context = example_length(config_.task);
    if (config_.model.positions == "learned" && lengths.back() > context) {
      refuse("record", "lengths",
             " has {}, but model.positions are learned for task.{} {} alone",
             lengths.back(), probe ? "length" : "context", context);
    }
    for (const std::int64_t length : lengths) check_probe(length, "lengths");
  } catch (const std::invalid_argument& error) {
    refuse("record", "lengths", ": {}", std::string(error.what()));
  }
}

void Checker::check_physics() {
  if (task_->kind != kPhysics) return;
  const TaskConfig& task = config_.task;
  if (!task.path.empty() && task_->name != "problem") {
    refuse("task", "path",
           " is {}, but {} is a problem of its own: task.name must be problem "
           "for a file",
           base::in_quotes(task.path), task_->name);
  }
  for (const auto& [key, points] :
       {std::pair("points", task.points), {"test_points", task.test_points}}) {
    if (points == 1 || points == 2)
      refuse("task", key, " is {}, must be 0 or at least 3", points);
  }
}

std::vector<BadValue> Checker::run() {
  for (const Field& field : fields()) check_value(field);
  if (!bad_.empty() || !knows_model()) return bad_;
  const Config defaults = default_config(task_->name, model_->name);
  bool sizes_hold = true;
  for (const Field& field : fields()) {
    check_heeded(field, defaults);
    sizes_hold = check_sizes_of_name(field, defaults) && sizes_hold;
  }
  check_activation();
  if (sizes_hold) {
    check_sizes();
    check_images();
  }
  check_stream(defaults);
  check_augmentation();
  check_norm_clamp();
  check_decay();
  for (BadValue& bad : nystrom_problems(config_)) {
    bad_.push_back(std::move(bad));
  }
  if (task_->kind == kPhysics) {
    for (BadValue& bad : optimizer_problems(config_, defaults)) {
      bad_.push_back(std::move(bad));
    }
  }
  check_tokenizer();
  check_sequences();
  check_window();
  check_lengths();
  check_physics();
  check_probe(config_.task.length, "length");
  if (task_->kind == kImages) check_distillation();
  return bad_;
}

}  // namespace

std::vector<BadValue> find_bad_values(const Config& config) {
  return Checker(config).run();
}

void check_config(const Config& config) {
  Problems problems;
  for (const BadValue& bad : find_bad_values(config)) {
    problems.add("", bad.message);
  }
  problems.check();
}

}  // namespace polyattn::run
