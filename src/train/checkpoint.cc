#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

#include "base/json_text.h"
#include "base/text_file.h"
#include "polyattn/models/state_file.h"

namespace polyattn::train {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;

base::Json optional_number(const std::optional<double>& value) {
  return value ? base::number(*value) : base::Json();
}

std::optional<double> optional_number_of(const base::Json& json) {
  if (json.is_null()) return std::nullopt;
  return base::number_of(json);
}

base::Json progress_json(const Progress& p) {
  base::Json json = {
      {"format", kFormat},
      {"step", p.info.step},
      {"metrics_bytes", p.metrics_bytes},
      {"loss_sum", base::number(p.loss_sum)},
      {"loss_count", p.loss_count},
      {"best", optional_number(p.best)},
      {"train_seconds", p.info.train_seconds},
      {"eval_seconds", p.info.eval_seconds},
      {"peak_mb", p.info.peak_mb},
      {"max_weight_norm", base::number(p.info.max_weight_norm)},
      {"max_jacobian_norm", base::number(p.info.max_jacobian_norm)}};
  const auto last = last_evaluation(p.info);
  if (last) json["last"] = evaluation_json(*last);
  return json;
}

// A count, which a number with a fraction or an exponent is not.
std::int64_t count_of(const base::Json& json, const char* key) {
  const base::Json& value = json.at(key);
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost) {
    throw run::RecordError(
        fmt::format("\"{}\" is {}, which is no count", key, value.dump()));
  }
  return value.get<std::int64_t>();
}

Progress progress_of(const base::Json& json) {
  if (json.at("format") != kFormat) {
    throw run::RecordError("its format is not " + std::to_string(kFormat));
  }
  Progress p;
  p.info.step = count_of(json, "step");
  p.metrics_bytes = count_of(json, "metrics_bytes");
  p.loss_sum = base::number_of(json.at("loss_sum"));
  p.loss_count = count_of(json, "loss_count");
  p.best = optional_number_of(json.at("best"));
  p.info.train_seconds = json.at("train_seconds").get<double>();
  p.info.eval_seconds = json.at("eval_seconds").get<double>();
  p.info.peak_mb = json.at("peak_mb").get<double>();
  p.info.max_weight_norm = base::number_of(json.at("max_weight_norm"));
  p.info.max_jacobian_norm = base::number_of(json.at("max_jacobian_norm"));
  if (json.contains("last")) {
    set_last_evaluation(p.info, evaluation_of(json["last"]));
  }
  return p;
}

void write_json(const fs::path& path, const base::Json& json) {
  base::write_text_file(path, json.dump(2) + "\n");
}

base::Json read_json(const fs::path& path) {
  constexpr std::size_t kMaxBytes = 1 << 16;
  return base::parse_json(base::read_text_file(path, kMaxBytes));
}

std::string file_name(std::int64_t step, std::string_view extension) {
  return fmt::format("step-{:08}.{}", step, extension);
}

// The number in step-NUMBER.EXTENSION.
std::optional<std::int64_t> step_in(const std::string& name,
                                    std::string_view extension) {
  constexpr std::string_view kBefore = "step-";
  if (!name.starts_with(kBefore)) return {};
  std::int64_t step = 0;
  std::from_chars(name.data() + kBefore.size(), name.data() + name.size(),
                  step);
  if (name != file_name(step, extension)) return {};
  return step;
}

}  // namespace

Checkpoints::Checkpoints(fs::path folder, std::int64_t keep)
    : folder_(std::move(folder)), keep_(std::max<std::int64_t>(1, keep)) {
  fs::create_directories(folder_);
}

fs::path Checkpoints::path(std::int64_t step, const char* extension) const {
  return folder_ / file_name(step, extension);
}

std::vector<std::int64_t> Checkpoints::steps() const {
  std::vector<std::int64_t> found;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const auto step = step_in(entry.path().filename().string(), "json");
    if (step) found.push_back(*step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

void Checkpoints::save(const Checkpoint& checkpoint) {
  const std::int64_t step = checkpoint.progress.info.step;
  models::save_tensors(path(step, "safetensors"), checkpoint.tensors);
  write_json(path(step, "json"), progress_json(checkpoint.progress));
  std::erase(damaged_, step);
  prune();
}

void Checkpoints::save_best(const models::NamedTensors& weights,
                            std::int64_t step, const Evaluation& evaluation) {
  models::save_tensors(folder_ / "best.safetensors", weights);
  base::Json json = {{"step", step}};
  json.update(evaluation_json(evaluation));
  write_json(folder_ / "best.json", json);
}

// The JSON goes first: without it the tensors are nothing.
void Checkpoints::remove(std::int64_t step) const {
  std::error_code ignored;
  fs::remove(path(step, "json"), ignored);
  fs::remove(path(step, "safetensors"), ignored);
}

// A damaged checkpoint may be of a later step than any that is saved from now
// on: it must not take the place of a whole one.
void Checkpoints::prune() {
  for (const std::int64_t step : damaged_) remove(step);
  damaged_.clear();
  const std::vector<std::int64_t> all = steps();
  const std::int64_t spare = static_cast<std::int64_t>(all.size()) - keep_;
  for (std::int64_t i = 0; i < spare; ++i) {
    remove(all[static_cast<std::size_t>(i)]);
  }
}

void Checkpoints::remove_orphans() const {
  std::vector<std::int64_t> orphans;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const auto step = step_in(entry.path().filename().string(), "safetensors");
    if (step && !fs::exists(path(*step, "json"))) orphans.push_back(*step);
  }
  for (const std::int64_t step : orphans) remove(step);
}

Checkpoint Checkpoints::load(std::int64_t step) const {
  Checkpoint checkpoint;
  checkpoint.progress = progress_of(read_json(path(step, "json")));
  checkpoint.tensors = models::load_tensors(path(step, "safetensors"));
  if (checkpoint.progress.info.step != step) {
    throw run::RecordError("it is of another step");
  }
  return checkpoint;
}

std::optional<Checkpoint> Checkpoints::latest(std::vector<std::string>& damaged,
                                              const Use& use) {
  damaged_.clear();
  const std::vector<std::int64_t> all = steps();
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    try {
      Checkpoint checkpoint = load(*step);
      use(checkpoint);
      return checkpoint;
    } catch (const std::exception& error) {
      damaged_.push_back(*step);
      damaged.push_back(
          fmt::format("{}: {}", path(*step, "json").string(), error.what()));
    }
  }
  return std::nullopt;
}

models::NamedTensors without_prefix(const models::NamedTensors& tensors,
                                    const std::string& prefix) {
  models::NamedTensors found;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = tensor;
  }
  return found;
}

}  // namespace polyattn::train
