// The state of a module as named tensors: taken out, put in, in a file.
//
// Names are torch's: blocks.0.attention.in_proj_weight. Putting in is all or
// nothing: every problem is collected and reported at once, and the module is
// touched only if there is none. Floating-point types are converted into each
// other; everything else must agree.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace polyattn::models {

using NamedTensors = std::map<std::string, torch::Tensor>;

// The tensors do not fit the module. what() lists all problems, one a line.
class WeightsError : public std::invalid_argument {
 public:
  WeightsError(const std::string& op, std::vector<std::string> problems);

  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> problems_;
};

// How a tensor of a public model lies, compared with that of the module.
enum class Layout {
  kSame,
  kTransposed,    // [in, out] where the module has [out, in]
  kLeadingOne,    // [1, ...] where the module has [...]
  kTrailingOnes,  // [H, 1, 1] where the module has [H]
};

// One tensor of the module, and where it comes from. Two may come from the same
// tensor.
struct Mapped {
  std::string theirs;
  std::string ours;
  Layout layout = Layout::kSame;
};

struct Mapping {
  std::vector<Mapped> tensors;
  // Names that may be there and are not read.
  std::vector<std::string> ignored = {};
  // Two names of one thing: if both are there, they must hold the same.
  std::vector<std::pair<std::string, std::string>> equal = {};
  // Names that may be there and are not read, but must hold these numbers, in
  // any shape: what the module makes itself.
  std::vector<std::pair<std::string, torch::Tensor>> known = {};
};

// Parameters and buffers. They share memory with the module.
NamedTensors state_of(const torch::nn::Module& module);

// Messages begin with [op]. Every tensor of the module needs a source, but for
// score_scale, coefficients and short_conv.weight of nn::Attention, which
// public models do not have: they stay as they are.
void load_mapped(const std::string& op, torch::nn::Module& module,
                 const NamedTensors& tensors, const Mapping& mapping);

// By the module's own names.
void load_state(torch::nn::Module& module, const NamedTensors& tensors);

}  // namespace polyattn::models
