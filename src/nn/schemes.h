// The schemes of initialise(): for each role of a parameter, how to fill it.
// The table of docs/models.md says the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace polyattn::nn {

enum class Role {
  kInProjection,  // rows of in_proj_weight that make q, k or v
  kLinear,
  kBranchEnd,  // out_proj and fc2, whose output is added to the rows
  kConvolution,
  kBias,           // of Linear and Conv2d
  kAttentionBias,  // in_proj_bias and gate_proj.bias
  kOutputBias,     // out_proj.bias
  kToken,
  kPosition,
  kClassToken,
};

struct Fans {
  std::int64_t in = 1;
  std::int64_t out = 1;
  // kInProjection: rows of q, k and v together.
  std::int64_t joint_out = 1;
};

enum class Distribution {
  kConstant,   // the value
  kUniform,    // in [-value, value]
  kNormal,     // the value is the standard deviation
  kTruncated,  // the same normal, drawn again beyond two standard deviations
};

struct Fill {
  Distribution distribution = Distribution::kConstant;
  double value = 0;
};

struct Scheme {
  std::string name;
  // `layers`: blocks of the module, at least 1.
  Fill (*fill)(Role role, const Fans& fans, std::int64_t layers);
};

const std::vector<Scheme>& schemes();

}  // namespace polyattn::nn
