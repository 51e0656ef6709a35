#include "train/evaluation.h"

namespace polyattn::train {

std::optional<Evaluation> last_evaluation(const run::RunInfo& info) {
  if (!info.loss) return std::nullopt;
  return Evaluation{*info.loss, info.accuracy, info.bits_per_byte};
}

void set_last_evaluation(run::RunInfo& info, const Evaluation& evaluation) {
  info.loss = evaluation.loss;
  info.accuracy = evaluation.accuracy;
  info.bits_per_byte = evaluation.bits_per_byte;
}

base::Json evaluation_json(const Evaluation& evaluation) {
  base::Json json = {{"loss", base::number(evaluation.loss)}};
  if (evaluation.accuracy)
    json["accuracy"] = base::number(*evaluation.accuracy);
  if (evaluation.bits_per_byte) {
    json["bits_per_byte"] = base::number(*evaluation.bits_per_byte);
  }
  return json;
}

Evaluation evaluation_of(const base::Json& json) {
  Evaluation evaluation;
  evaluation.loss = base::number_of(json.at("loss"));
  if (json.contains("accuracy")) {
    evaluation.accuracy = base::number_of(json["accuracy"]);
  }
  if (json.contains("bits_per_byte")) {
    evaluation.bits_per_byte = base::number_of(json["bits_per_byte"]);
  }
  return evaluation;
}

}  // namespace polyattn::train
