// The norms that the theory speaks of, while a model trains: of the attention
// matrices and their Jacobians by layer and head, and of weights and gradients
// by layer.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/layer_norms.h"
#include "train/run/records.h"

namespace polyattn::train {

// While it lives, the attention layers of the module record their norms. Models
// that run in plain torch ops have none to record: norms() is empty then.
class NormWatch {
 public:
  explicit NormWatch(torch::nn::Module& module);
  ~NormWatch();
  NormWatch(const NormWatch&) = delete;
  NormWatch& operator=(const NormWatch&) = delete;

  // Takes in the forward and backward pass that was just made, one of the
  // batches of a step.
  void add_batch();

  // Of all batches, a layer each: means of their means, the largest of their
  // maxima. Weights and gradients are those of now.
  std::vector<LayerNorms> norms() const;

 private:
  torch::nn::Module& module_;
  std::vector<LayerNorms> sums_;  // means are summed up here
  std::int64_t batches_ = 0;
};

// The record of metrics.jsonl (run/records.h).
base::Json norms_record(std::int64_t step, std::int64_t tokens,
                        const std::vector<LayerNorms>& layers);

// What blew up first: "attention of layer 2: largest |score| is inf". Nothing
// if all is finite.
std::optional<std::string> first_blow_up(const std::vector<LayerNorms>& layers);

}  // namespace polyattn::train
