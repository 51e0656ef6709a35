// The models of Nystromformer for Long Range Arena, with softmax, any other
// activation or its own attention (mlpen/Nystromformer, LRA/).
//
//   SequenceClassifier model(lra_options("listops"));
//   load_lra(model, load_tensors("listops-softmax.cp.0.model"));
#pragma once

#include <string>
#include <vector>

#include "polyattn/models/classifier.h"
#include "polyattn/models/weights.h"

namespace polyattn::models {

// listops, text, retrieval, image, pathfinder: vocabulary, positions and
// classes of each; a head of two layers, token 0 masked wherever it stands, the
// mean over all positions, dropout 0.1. docs/models.md says what we do
// differently.
SequenceClassifierOptions lra_options(const std::string& task);
std::vector<std::string> lra_names();

// Their weights by their names. Those of a model with Nystrom attention have a
// convolution, and fit a model whose block().nystrom() has it too. Throws
// WeightsError, and c10::Error if the model has other positions or another
// head.
void load_lra(SequenceClassifier& model, const NamedTensors& tensors);

}  // namespace polyattn::models
