// run.json.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <system_error>
#include <utility>

#include "base/duration.h"
#include "base/json_text.h"
#include "base/message.h"
#include "base/text_file.h"
#include "train/run/models.h"
#include "train/run/records.h"
#include "train/run/tasks.h"

namespace polyattn::run {
namespace {

// Raised when readers of before would misunderstand the file.
constexpr int kFormat = 1;
constexpr std::size_t kMaxBytes = 1 << 20;

constexpr std::array<std::pair<RunState, const char*>, 4> kStates = {{
    {RunState::kRunning, "running"},
    {RunState::kFinished, "finished"},
    {RunState::kDiverged, "diverged"},
    {RunState::kInterrupted, "interrupted"},
}};

// Every member once, for writing and for reading.
template <typename Visitor, typename Info>
void visit_members(Visitor& visit, Info& info) {
  visit("state", info.state);
  visit("task", info.task);
  visit("activation", info.activation);
  visit("model", info.model);
  visit("variant", info.variant);
  visit("seed", info.seed);
  visit("step", info.step);
  visit("steps", info.steps);
  visit("parameters", info.parameters);
  visit("version", info.version);
  visit("command", info.command);
  visit("instruction_set", info.instruction_set);
  visit("path_costs", info.path_costs);
  visit("blas", info.blas);
  visit("kernel_bits", info.kernel_bits);
  visit("threads", info.threads);
  visit("machine", info.machine);
  visit("started", info.started);
  visit("train_seconds", info.train_seconds);
  visit("eval_seconds", info.eval_seconds);
  visit("peak_mb", info.peak_mb);
  visit(info.result);
  visit("tokens", info.tokens);
  visit("test_count", info.test_count);
  visit("pixels", info.pixels);
  visit("images", info.images);
  visit("teacher", info.teacher);
  visit("tokenizer", info.tokenizer);
  visit("split", info.split);
  visit("max_weight_norm", info.max_weight_norm);
  visit("max_jacobian_norm", info.max_jacobian_norm);
  visit("divergence", info.divergence);
}

class Printer {
 public:
  void operator()(const char* key, RunState state) {
    json[key] = name_of(state);
  }
  void operator()(const char* key, double value) {
    json[key] = base::number(value);
  }
  // The figures are members of the file itself, and null if they are not there.
  void operator()(const std::optional<Evaluation>& value) {
    json.update(
        {{"loss", nullptr}, {"accuracy", nullptr}, {"bits_per_byte", nullptr}});
    if (value) json.update(evaluation_json(*value));
  }
  void operator()(const char* key, const std::optional<std::string>& value) {
    json[key] = value ? base::Json(*value) : base::Json();
  }
  void operator()(const char* key, const std::optional<std::int64_t>& value) {
    json[key] = value ? base::Json(*value) : base::Json();
  }
  void operator()(const char* key, const std::optional<Divergence>& value) {
    json[key] = base::Json();
    if (value) json[key] = {{"step", value->step}, {"what", value->what}};
  }
  void operator()(const char* key,
                  const std::optional<PixelStatistics>& value) {
    json[key] = base::Json();
    if (value) json[key] = {{"mean", value->mean}, {"std", value->std}};
  }
  void operator()(const char* key, const std::optional<ImageShape>& value) {
    json[key] = base::Json();
    if (!value) return;
    json[key] = {{"channels", value->channels},
                 {"size", value->size},
                 {"classes", value->classes}};
  }
  void operator()(const char* key, const std::optional<Teacher>& value) {
    json[key] = base::Json();
    if (!value) return;
    json[key] = {{"run", value->run},
                 {"model", value->model},
                 {"activation", value->activation},
                 {"accuracy", nullptr},
                 {"weights", value->weights}};
    if (value->accuracy) json[key]["accuracy"] = *value->accuracy;
  }
  template <typename Plain>
  void operator()(const char* key, const Plain& value) {
    json[key] = value;
  }

  base::Json json;
};

class InfoReader {
 public:
  InfoReader(const base::Json& json, std::string file)
      : json_(json), file_(std::move(file)) {}

  void operator()(const char* key, RunState& state) {
    const auto name = string(json_, key);
    for (const auto& [candidate, text] : kStates) {
      if (name != text) continue;
      state = candidate;
      return;
    }
    refuse(key, fmt::format("is {}, which is no state", base::in_quotes(name)));
  }
  void operator()(const char* key, std::string& value) {
    value = string(json_, key);
  }
  void operator()(const char* key, std::int64_t& value) {
    value = integer(json_, key, kMaxCount);
  }
  void operator()(const char* key, int& value) {
    value =
        static_cast<int>(integer(json_, key, std::numeric_limits<int>::max()));
  }
  void operator()(const char* key, double& value) {
    const base::Json& json = part(json_, key);
    try {
      value = base::number_of(json);
    } catch (const base::JsonError&) {
      refuse(key, wrong_type(json, "a number"));
    }
  }
  template <typename Value>
  void operator()(const char* key, std::optional<Value>& value) {
    value.reset();
    if (is_absent(key)) return;
    (*this)(key, value.emplace());
  }
  void operator()(std::optional<Evaluation>& value) {
    std::optional<double> loss;
    Evaluation found;
    (*this)("loss", loss);
    (*this)("accuracy", found.accuracy);
    (*this)("bits_per_byte", found.bits_per_byte);
    (*this)("relative_l1", found.relative_l1);
    (*this)("relative_l2", found.relative_l2);
    (*this)("terms", found.terms);
    found.loss = loss.value_or(0);
    value = loss ? std::optional(found) : std::nullopt;
  }
  void operator()(const char* key, std::map<std::string, double>& values) {
    if (is_absent(key)) return;
    for (const auto& [name, json] : object(key).items()) {
      if (!json.is_number() && !json.is_string()) {
        refuse(key, wrong_type(json, "numbers"));
      }
      values[name] = base::number_of(json);
    }
  }
  void operator()(const char* key, std::optional<Divergence>& value) {
    value.reset();
    if (is_absent(key)) return;
    const base::Json& json = object(key);
    value = Divergence{integer(json, "step", kMaxCount), string(json, "what")};
  }
  void operator()(const char* key, std::optional<PixelStatistics>& value) {
    value.reset();
    if (is_absent(key)) return;
    const base::Json& json = object(key);
    value = PixelStatistics{numbers(json, "mean"), numbers(json, "std")};
  }
  void operator()(const char* key, std::optional<ImageShape>& value) {
    value.reset();
    if (is_absent(key)) return;
    const base::Json& json = object(key);
    value = ImageShape{integer(json, "channels", kMaxCount),
                       integer(json, "size", kMaxCount),
                       integer(json, "classes", kMaxCount)};
  }
  void operator()(const char* key, std::optional<Teacher>& value) {
    value.reset();
    if (is_absent(key)) return;
    const base::Json& json = object(key);
    value = Teacher{string(json, "run"),
                    string(json, "model"),
                    string(json, "activation"),
                    {},
                    string(json, "weights")};
    const base::Json& accuracy = part(json, "accuracy");
    if (accuracy.is_null()) return;
    if (!accuracy.is_number()) {
      refuse(key, "has an accuracy that " + wrong_type(accuracy, "a number"));
    }
    value->accuracy = accuracy.get<double>();
  }

  void check_format() {
    if (!json_.is_object()) {
      throw RecordError(fmt::format("[run] {}: it is no JSON object", file_));
    }
    const std::int64_t format = integer(json_, "format", 1'000'000);
    if (format == kFormat) return;
    refuse("format", fmt::format("is {}, but this version of polyattn reads {}",
                                 format, kFormat));
  }

 private:
  static constexpr auto kMaxCount = std::numeric_limits<std::int64_t>::max();

  [[noreturn]] void refuse(const char* key, const std::string& why) const {
    throw RecordError(fmt::format("[run] {}: \"{}\" {}", file_, key, why));
  }

  static std::string wrong_type(const base::Json& json, const char* wanted) {
    return fmt::format("is of type {}, must be {}", json.type_name(), wanted);
  }

  bool is_absent(const char* key) const {
    return !json_.contains(key) || json_[key].is_null();
  }

  const base::Json& part(const base::Json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) refuse(key, "is missing");
    return *found;
  }

  const base::Json& object(const char* key) const {
    const base::Json& json = part(json_, key);
    if (!json.is_object()) refuse(key, wrong_type(json, "an object"));
    return json;
  }

  std::string string(const base::Json& object, const char* key) const {
    const base::Json& json = part(object, key);
    if (!json.is_string()) refuse(key, wrong_type(json, "a string"));
    return json.get<std::string>();
  }

  std::vector<double> numbers(const base::Json& object, const char* key) const {
    const base::Json& json = part(object, key);
    if (!json.is_array()) refuse(key, wrong_type(json, "an array"));
    std::vector<double> values;
    for (const base::Json& item : json) {
      if (!item.is_number()) refuse(key, wrong_type(item, "numbers"));
      values.push_back(item.get<double>());
    }
    return values;
  }

  // All integers of the file are counts.
  std::int64_t integer(const base::Json& object, const char* key,
                       std::int64_t max) const {
    const base::Json& json = part(object, key);
    if (!json.is_number_integer()) refuse(key, wrong_type(json, "an integer"));
    if (!json.is_number_unsigned() ||
        json.get<std::uint64_t>() > static_cast<std::uint64_t>(max)) {
      refuse(key, fmt::format("is {}, must be from 0 to {}", json.dump(), max));
    }
    return json.get<std::int64_t>();
  }

  const base::Json& json_;
  std::string file_;
};

}  // namespace

std::string subject_of(const RunInfo& info) {
  const TaskEntry* const task = find_task(info.task);
  const bool own =
      !info.model ||
      (task != nullptr && *info.model == default_model(task->kind)->name);
  return own ? info.task : fmt::format("{}, {}", info.task, *info.model);
}

std::string arm_name(const std::string& activation,
                     const std::string& variant) {
  return variant.empty() ? activation
                         : fmt::format("{}{{{}}}", activation, variant);
}

std::string arm_name(const RunInfo& info) {
  return arm_name(info.activation, info.variant.value_or(""));
}

std::string name_of(RunState state) {
  for (const auto& [candidate, text] : kStates) {
    if (candidate == state) return text;
  }
  return "unknown";
}

void write_run_info(const std::filesystem::path& folder, const RunInfo& info) {
  Printer printer;
  printer.json["format"] = kFormat;
  visit_members(printer, info);
  const std::string text = printer.json.dump(
      2, ' ', /*ensure_ascii=*/false, base::Json::error_handler_t::replace);
  try {
    base::write_text_file(folder / "run.json", text + "\n");
  } catch (const std::system_error& error) {
    throw RecordError(fmt::format("[run] {}", error.what()));
  }
}

RunInfo read_run_info(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "run.json";
  base::Json json;
  try {
    json = base::parse_json(base::read_text_file(path, kMaxBytes));
  } catch (const base::JsonError& error) {
    throw RecordError(fmt::format("[run] {}: {}", path.string(), error.what()));
  } catch (const std::runtime_error& error) {
    throw RecordError(fmt::format("[run] {}", error.what()));
  }
  InfoReader reader(json, path.string());
  reader.check_format();
  RunInfo info;
  visit_members(reader, info);
  return info;
}

std::string outcome_text(const RunInfo& info) {
  if (info.divergence) {
    return fmt::format("diverged at step {}: {}", info.divergence->step,
                       info.divergence->what);
  }
  std::string text;
  const Evaluation result = info.result.value_or(Evaluation());
  if (result.bits_per_byte) {
    text = fmt::format("{:.3f} bits per byte", *result.bits_per_byte);
  } else if (result.accuracy) {
    text = fmt::format("accuracy {:.2f} %, loss {:.3f}", 100 * *result.accuracy,
                       result.loss);
  } else if (result.relative_l2) {
    text = fmt::format("relative L2 error {:.4f}, loss {:.3g}",
                       *result.relative_l2, result.loss);
  }
  if (info.state == RunState::kInterrupted) {
    text = fmt::format("interrupted at step {} of {}", info.step, info.steps);
  }
  return fmt::format("{}, {} of training", text,
                     base::duration_text(info.train_seconds));
}

}  // namespace polyattn::run
