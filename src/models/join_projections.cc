#include "models/join_projections.h"

#include <vector>

namespace polyattn::models {

void join_projections(NamedTensors& tensors,
                      const std::array<std::string, 3>& parts,
                      const std::string& joint) {
  std::vector<torch::Tensor> rows;
  for (const std::string& name : parts) {
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.dim() == 0) return;
    if (!rows.empty() &&
        (found->second.sizes() != rows[0].sizes() ||
         found->second.scalar_type() != rows[0].scalar_type())) {
      return;
    }
    rows.push_back(found->second);
  }
  tensors[joint] = torch::cat(rows);
  for (const std::string& name : parts) tensors.erase(name);
}

}  // namespace polyattn::models
