#include "nn/center_rows.h"

#include <vector>

namespace polyattn::nn {
namespace {

// The mean of v up to a row, for rows one after the other.
class PrefixMean {
 public:
  explicit PrefixMean(std::int64_t columns)
      : sum_(static_cast<std::size_t>(columns)), mean_(sum_.size()) {}

  // [groups, width].
  const float* add(const float* row) {
    const double share = 1.0 / static_cast<double>(++rows_);
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      sum_[i] += row[i];
      mean_[i] = static_cast<float>(sum_[i] * share);
    }
    return mean_.data();
  }

 private:
  std::vector<double> sum_;
  std::vector<float> mean_;
  std::int64_t rows_ = 0;
};

}  // namespace

void center_forward(const float* o1, const float* v, const CenterShape& s,
                    float* o) {
  PrefixMean prefix(s.groups * s.width);
  const std::int64_t group = s.heads / s.groups;
  for (std::int64_t n = 0; n < s.rows; ++n) {
    const float* const means = prefix.add(v + n * s.stride);
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const float* const mean = means + h / group * s.width;
      const float rest = 1 - o1[s.width];
      for (std::int64_t i = 0; i < s.width; ++i) o[i] = o1[i] + rest * mean[i];
      o1 += s.width + 1;
      o += s.width;
    }
  }
}

// Forwards for d_o1, whose last column needs the means; backwards for dv, to
// which every later row adds.
void center_backward(const float* o1, const float* v, const float* d_o,
                     const CenterShape& s, float* d_o1, float* dv) {
  PrefixMean prefix(s.groups * s.width);
  const std::int64_t group = s.heads / s.groups, columns = s.groups * s.width;
  for (std::int64_t n = 0; n < s.rows; ++n) {
    const float* const means = prefix.add(v + n * s.stride);
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::int64_t row = n * s.heads + h;
      const float* const outer = d_o + row * s.width;
      const float* const mean = means + h / group * s.width;
      float* const to = d_o1 + row * (s.width + 1);
      double product = 0;
      for (std::int64_t i = 0; i < s.width; ++i) {
        to[i] = outer[i];
        product += static_cast<double>(outer[i]) * mean[i];
      }
      to[s.width] = static_cast<float>(-product);
    }
  }
  std::vector<double> later(static_cast<std::size_t>(columns));
  for (std::int64_t n = s.rows - 1; n >= 0; --n) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::int64_t row = n * s.heads + h;
      const float* const outer = d_o + row * s.width;
      double* const sum = later.data() + h / group * s.width;
      const double share =
          (1 - o1[row * (s.width + 1) + s.width]) / static_cast<double>(n + 1);
      for (std::int64_t i = 0; i < s.width; ++i) sum[i] += share * outer[i];
    }
    for (std::int64_t i = 0; i < columns; ++i)
      dv[n * columns + i] =
          static_cast<float>(later[static_cast<std::size_t>(i)]);
  }
}

}  // namespace polyattn::nn
