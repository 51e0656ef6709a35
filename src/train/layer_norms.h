// The norms of one layer. Without torch, for those who only read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace polyattn::train {

struct LayerNorms {
  std::string kind = "token";  // nn::AttentionBase::kind()
  std::int64_t stage = 0;      // and ::stage
  std::int64_t tokens = 0;     // N: keys of its rows
  // By head: mean and maximum over the batch.
  std::vector<double> weight_mean, weight_max;
  std::vector<double> jacobian_mean, jacobian_max;
  std::vector<double> max_abs_score;
  std::int64_t non_finite = 0;  // outputs that are inf or NaN
  double gradient = 0;          // of the parameters of its block
  double parameters = 0;
};

}  // namespace polyattn::train
