#include "train/progress.h"

#include <fmt/format.h>

#include <limits>

namespace polyattn::train {
namespace {

constexpr int kFormat = 1;

base::Json optional_number(const std::optional<double>& value) {
  return value ? base::number(*value) : base::Json();
}

std::optional<double> optional_number_of(const base::Json& json) {
  if (json.is_null()) return std::nullopt;
  return base::number_of(json);
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

}  // namespace

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
  if (p.info.result) json["last"] = run::evaluation_json(*p.info.result);
  return json;
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
  if (json.contains("last")) p.info.result = run::evaluation_of(json["last"]);
  return p;
}

}  // namespace polyattn::train
