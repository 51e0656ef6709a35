#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/text_file.h"
#include "polyattn/models/state_file.h"

namespace polyattn::train {
namespace {

namespace fs = std::filesystem;

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
                            std::int64_t step,
                            const run::Evaluation& evaluation) {
  models::save_tensors(folder_ / "best.safetensors", weights);
  base::Json json = {{"step", step}};
  json.update(run::evaluation_json(evaluation));
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
