#include "train/evaluation.h"

namespace polyattn::train {

run::Json evaluation_json(const Evaluation& evaluation) {
  run::Json json = {{"loss", run::number(evaluation.loss)}};
  if (evaluation.accuracy) json["accuracy"] = run::number(*evaluation.accuracy);
  if (evaluation.bits_per_byte) {
    json["bits_per_byte"] = run::number(*evaluation.bits_per_byte);
  }
  return json;
}

Evaluation evaluation_of(const run::Json& json) {
  Evaluation evaluation;
  evaluation.loss = run::number_of(json.at("loss"));
  if (json.contains("accuracy")) {
    evaluation.accuracy = run::number_of(json["accuracy"]);
  }
  if (json.contains("bits_per_byte")) {
    evaluation.bits_per_byte = run::number_of(json["bits_per_byte"]);
  }
  return evaluation;
}

}  // namespace polyattn::train
