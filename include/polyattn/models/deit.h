// DeiT: a ViT, of which the distilled sizes have a second token and a second
// head that learn from a teacher.
//
//   ViT model(deit_options("tiny-distilled"));
//   DistilledLogits logits = model->distilled_logits(images);  // to learn by
//   torch::Tensor mean = model->forward(images);               // to use
#pragma once

#include <string>
#include <vector>

#include "polyattn/models/vit.h"

namespace polyattn::models {

// tiny, small, base (224 pixels in patches of 16), tiny32 (32 pixels), and each
// with -distilled behind it. docs/models.md has their sizes.
ViTOptions deit_options(const std::string& name);
std::vector<std::string> deit_names();

// Weights under the names of facebookresearch/deit and of timm, distilled or
// not; also those of timm's vit_*_patch16_224.
void load_deit(ViT& model, const NamedTensors& tensors);

}  // namespace polyattn::models
