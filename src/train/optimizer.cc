#include "train/optimizer.h"

namespace polyattn::train {

torch::Tensor take_tensor(const models::NamedTensors& tensors,
                          const std::string& name, const torch::Tensor& like,
                          std::vector<std::string>& problems) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    problems.push_back(name + " is missing");
    return {};
  }
  if (found->second.sizes() != like.sizes() ||
      found->second.scalar_type() != like.scalar_type()) {
    problems.push_back(name + " does not fit");
    return {};
  }
  return found->second.contiguous();
}

}  // namespace polyattn::train
