#include "nn/schemes.h"

#include <cmath>

namespace polyattn::nn {
namespace {

constexpr double kStd = 0.02;

Fill normal(double deviation) { return {Distribution::kNormal, deviation}; }

Fill truncated(double deviation) {
  return {Distribution::kTruncated, deviation};
}

Fill zero() { return {}; }

Fill xavier_uniform(std::int64_t in, std::int64_t out) {
  return {Distribution::kUniform,
          std::sqrt(6.0 / static_cast<double>(in + out))};
}

// What kaiming_uniform with a = sqrt(5) comes to.
Fill torch_uniform(const Fans& fans) {
  return {Distribution::kUniform, 1 / std::sqrt(static_cast<double>(fans.in))};
}

Fill torch_fill(Role role, const Fans& fans, std::int64_t /*layers*/) {
  switch (role) {
    case Role::kInProjection:
      return xavier_uniform(fans.in, fans.joint_out);
    case Role::kAttentionBias:
    case Role::kOutputBias:
    case Role::kClassToken:
      return zero();
    case Role::kToken:
      return normal(1);
    case Role::kPosition:
      return normal(kStd);
    default:
      return torch_uniform(fans);
  }
}

Fill vit_fill(Role role, const Fans& fans, std::int64_t /*layers*/) {
  switch (role) {
    case Role::kBias:
    case Role::kAttentionBias:
    case Role::kOutputBias:
      return zero();
    case Role::kConvolution:
      return truncated(1 / std::sqrt(static_cast<double>(fans.in)));
    case Role::kClassToken:
      return normal(1e-6);
    default:
      return truncated(kStd);
  }
}

Fill gpt2_fill(Role role, const Fans& /*fans*/, std::int64_t layers) {
  switch (role) {
    case Role::kBias:
    case Role::kAttentionBias:
    case Role::kOutputBias:
      return zero();
    case Role::kBranchEnd:
      return normal(kStd / std::sqrt(2 * static_cast<double>(layers)));
    default:
      return normal(kStd);
  }
}

Fill xavier_fill(Role role, const Fans& fans, std::int64_t /*layers*/) {
  switch (role) {
    case Role::kBias:
    case Role::kAttentionBias:
    case Role::kOutputBias:
    case Role::kClassToken:
      return zero();
    case Role::kToken:
    case Role::kPosition:
      return normal(kStd);
    default:
      return xavier_uniform(fans.in, fans.out);
  }
}

// What the authors of PINNsformer do: torch's own values, then new ones for
// every Linear, out_proj included.
Fill pinn_fill(Role role, const Fans& fans, std::int64_t layers) {
  switch (role) {
    case Role::kLinear:
    case Role::kBranchEnd:
      return xavier_uniform(fans.in, fans.out);
    case Role::kBias:
    case Role::kOutputBias:
      return {Distribution::kConstant, 0.01};
    default:
      return torch_fill(role, fans, layers);
  }
}

}  // namespace

const std::vector<Scheme>& schemes() {
  static const std::vector<Scheme> list = {{"torch", torch_fill},
                                           {"vit", vit_fill},
                                           {"gpt2", gpt2_fill},
                                           {"xavier", xavier_fill},
                                           {"pinn", pinn_fill}};
  return list;
}

}  // namespace polyattn::nn
