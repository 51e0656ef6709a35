#include "bench/quality_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <span>
#include <utility>

#include "base/json_text.h"
#include "base/program.h"
#include "bench/rig.h"
#include "bench/timed.h"
#include "bench/torch_comparisons.h"
#include "data/sha256.h"
#include "polyattn/models/state_file.h"
#include "train/adamw.h"
#include "train/schedule.h"
#include "train/start.h"

namespace polyattn::bench {
namespace {

using base::Json;

// What the model in PyTorch does not have must have its default here, also keys
// that are younger than this.
void check_comparable(const run::Config& config) {
  const run::ModelConfig& model = config.model;
  run::Config plain = config;
  plain.model = {.name = model.name,
                 .activation = model.activation,
                 .dim = model.dim,
                 .depth = model.depth,
                 .heads = model.heads,
                 .mlp = model.mlp,
                 .patch = model.patch,
                 .pooling = model.pooling == "class" ? "class" : "mean",
                 .initialisation = model.initialisation,
                 .start = model.start,
                 .start_factor = model.start_factor,
                 .qk_gain = model.qk_gain,
                 .tied = model.tied};
  const run::TrainConfig train;
  plain.train.accumulate = train.accumulate;
  plain.train.ema = train.ema;
  plain.train.teacher = train.teacher;
  plain.train.autocast = train.autocast;
  const auto differences = run::config_differences(config, plain);
  if (differences.empty()) return;
  throw base::UsageError(
      fmt::format("time-to-quality: the model in PyTorch has only the plain "
                  "layers, but {}",
                  fmt::join(differences, "; ")));
}

Json model_json(const run::ModelConfig& model) {
  return {{"dim", model.dim},
          {"depth", model.depth},
          {"heads", model.heads},
          {"mlp", model.mlp},
          {"pooling", model.pooling}};
}

Json train_json(const run::TrainConfig& train, std::int64_t steps) {
  Json json{{"weight_decay", train.weight_decay},
            {"beta1", train.beta1},
            {"beta2", train.beta2},
            {"eps", train.eps},
            {"clip", train.clip},
            {"label_smoothing", train.label_smoothing},
            {"lr", Json::array()}};
  for (std::int64_t i = 0; i < steps; ++i) {
    json["lr"].push_back(train::learning_rate(train, i, train.steps));
  }
  return json;
}

void hash_tensor(data::Sha256& hash, const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.detach().contiguous();
  hash.update(std::as_bytes(
      std::span(static_cast<const char*>(dense.data_ptr()), dense.nbytes())));
}

void hash_batch(data::Sha256& hash, const train::Batch& batch) {
  for (const auto& tensor : {batch.inputs, batch.lengths, batch.targets}) {
    hash_tensor(hash, tensor);
  }
}

// One model: how long the steps of its rounds took.
struct Timing {
  std::shared_ptr<Rig> rig;
  std::vector<double> processor_seconds = {}, seconds = {}, losses = {};

  void run(std::int64_t steps, bool counts) {
    const double before = bench::processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < steps; ++i) losses.push_back(rig->step());
    const std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - start;
    if (!counts) return;
    const auto count = static_cast<double>(steps);
    processor_seconds.push_back((bench::processor_seconds() - before) / count);
    seconds.push_back(elapsed.count() / count);
  }
};

}  // namespace

QualitySteps::QualitySteps(const run::Config& softmax,
                           std::shared_ptr<const train::TaskData> data,
                           const StepPlan& plan)
    : config_(softmax), data_(std::move(data)), plan_(plan) {
  check_comparable(config_);
  if (!std::holds_alternative<data::SequenceSplits>(*data_)) {
    throw base::UsageError(fmt::format(
        "time-to-quality: {} is no task of sequences", config_.task.name));
  }
  examples_ = train::make_examples(data_, config_);
  for (std::int64_t i = 0; i < plan_.batches; ++i) {
    batches_.push_back(examples_->train_batch(i));
  }
  const Json description{
      {"task", config_.task.name},
      {"model", model_json(config_.model)},
      {"train", train_json(config_.train, plan_.batches * (plan_.rounds + 1))},
      {"batches", plan_.batches},
      {"rounds", plan_.rounds}};
  description_ = base::printed(description);
  data::Sha256 hash;
  hash.update(std::as_bytes(std::span(description_)));
  for (const auto& [name, tensor] : models::state_of(network()->module())) {
    hash_tensor(hash, tensor);
  }
  for (const train::Batch& batch : batches_) hash_batch(hash, batch);
  constexpr std::size_t kDigits = 16;
  id_ = hash.finish().substr(0, kDigits);
}

std::unique_ptr<train::Network> QualitySteps::network() const {
  return train::make_network(config_, train::shape_of(*data_, config_.task));
}

void QualitySteps::write(const std::filesystem::path& path) const {
  const auto model = network();
  models::NamedTensors tensors = models::state_of(model->module());
  Json decays = Json::array();
  for (const auto& [name, tensor] : tensors) {
    if (train::decays(name, tensor)) decays.push_back(name);
  }
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    const std::string name = fmt::format("batch.{}.", i);
    tensors[name + "inputs"] = batches_[i].inputs;
    tensors[name + "lengths"] = batches_[i].lengths;
    tensors[name + "targets"] = batches_[i].targets;
  }
  models::save_tensors(path, tensors,
                       {{"id", id_},
                        {"description", description_},
                        {"decays", base::printed(decays)}});
}

QualitySteps::Timed QualitySteps::time(
    const std::vector<run::Arm>& arms) const {
  const TorchThreads own(plan_.threads);
  std::vector<Timing> timings;
  for (const run::Arm& arm : arms) {
    const run::Config config = run::arm_config(config_, arm);
    auto started = train::start_network(
        config, train::shape_of(*data_, config.task), *examples_);
    timings.push_back({std::make_shared<Rig>(
        config, std::move(started.network), [this](std::int64_t index) {
          return batches_[static_cast<std::size_t>(index % plan_.batches)];
        })});
  }
  for (int round = 0; round <= plan_.rounds; ++round) {
    for (Timing& timing : timings) timing.run(plan_.batches, round > 0);
  }
  Timed result{.times = {}, .losses = timings.front().losses};
  for (std::size_t i = 0; i < arms.size(); ++i) {
    result.times.push_back(
        {.model = arms[i].name(),
         .threads = plan_.threads,
         .processor_seconds = base::spread_of(timings[i].processor_seconds),
         .seconds = base::spread_of(timings[i].seconds)});
  }
  return result;
}

}  // namespace polyattn::bench
