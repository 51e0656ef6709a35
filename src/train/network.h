// The model of a task, as the loop sees it: a module that turns a batch into
// logits.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "polyattn/models/vit.h"
#include "train/examples.h"
#include "train/run/config.h"

namespace polyattn::train {

class Network {
 public:
  virtual ~Network() = default;

  virtual torch::nn::Module& module() = 0;

  // [rows, classes], a row for each target; of a differential equation its
  // unknown [rows].
  virtual torch::Tensor logits(const Batch& batch) = 0;

  // Of a differential equation: what its loss is the sum of, by name. Empty for
  // what learns from targets.
  virtual std::map<std::string, torch::Tensor> loss_terms(
      const Batch& /*batch*/) {
    return {};
  }

  // What a student with a teacher learns by. Models whose one head learns from
  // both have its logits twice.
  virtual models::DistilledLogits distilled_logits(const Batch& batch) {
    const torch::Tensor both = logits(batch);
    return {both, both};
  }

  // Rows that an attention sees, at most: the N of its norms. 0: its layers
  // differ, and say it themselves (layer_tokens of the records).
  virtual std::int64_t tokens() const = 0;

  // Rows of them before those of the input, such as a class token.
  virtual std::int64_t prefix() const { return 0; }
};

// The model that model.name says (train/run/models.h). The initial weights are
// a function of the config's seed. Throws c10::Error for options that do not
// fit together.
std::unique_ptr<Network> make_network(const run::Config& config,
                                      const TaskShape& shape);

// The mean over the targets of a batch, with label smoothing and mixup; targets
// of -100 do not count.
torch::Tensor loss_of(const torch::Tensor& logits, const Batch& batch,
                      double label_smoothing);

std::int64_t parameter_count(const torch::nn::Module& module);

}  // namespace polyattn::train
