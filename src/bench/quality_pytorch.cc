#include "bench/quality_pytorch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/json_text.h"
#include "base/text_file.h"

namespace polyattn::bench {
namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr double kSameLoss = 1e-3;

std::vector<double> numbers(const base::Json& json, const char* key) {
  std::vector<double> values;
  for (const base::Json& value : json.at(key)) {
    values.push_back(base::number_of(value));
  }
  if (values.empty()) {
    throw base::JsonError(fmt::format("{} is an empty list", key));
  }
  return values;
}

base::Spread times(const base::Json& json, const char* key) {
  const std::vector<double> values = numbers(json, key);
  for (const double value : values) {
    if (value > 0 && std::isfinite(value)) continue;
    throw base::JsonError(fmt::format("{} has {}, expected > 0", key, value));
  }
  return base::spread_of(values);
}

}  // namespace

PyTorchSteps read_pytorch_steps(const std::filesystem::path& path) {
  const std::string text = base::read_text_file(path, kMaxBytes);
  try {
    const base::Json json = base::parse_json(text);
    PyTorchSteps result{
        .time = {.model = "softmax",
                 .by = fmt::format("PyTorch {}, {}",
                                   json.at("torch").get<std::string>(),
                                   json.at("attention").get<std::string>()),
                 .threads = json.at("threads").get<int>(),
                 .processor_seconds = times(json, "processor_seconds"),
                 .seconds = times(json, "seconds")},
        .steps = json.at("steps").get<std::string>(),
        .losses = numbers(json, "losses")};
    return result;
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("cannot read {}: it is not what "
                    "examples/pytorch_steps.py --json writes: {}",
                    path.string(), error.what()));
  }
}

void check_steps(const std::filesystem::path& path, const PyTorchSteps& theirs,
                 const std::string& steps) {
  if (theirs.steps == steps) return;
  throw std::runtime_error(fmt::format(
      "{} is of other steps ({}, not {}): run examples/pytorch_steps.py again "
      "on the file of --prepare",
      path.string(), theirs.steps, steps));
}

void check_losses(const std::filesystem::path& path, const PyTorchSteps& theirs,
                  const std::vector<double>& ours) {
  const std::size_t count = std::min(ours.size(), theirs.losses.size());
  for (std::size_t i = 0; i < count; ++i) {
    const double error = std::abs(ours[i] - theirs.losses[i]);
    if (error <= kSameLoss * std::abs(ours[i])) continue;
    throw std::runtime_error(
        fmt::format("{}: the loss of step {} is {}, ours {}: it is not the "
                    "same model",
                    path.string(), i + 1, theirs.losses[i], ours[i]));
  }
}

}  // namespace polyattn::bench
