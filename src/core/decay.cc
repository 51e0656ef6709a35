#include "core/decay.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "core/linear_plan.h"

namespace polyattn {
namespace {

bool is_kept(const Problem& p, std::int64_t b, std::int64_t g, std::int64_t j) {
  if (!p.in.mask) return true;
  const ConstMask& mask = *p.in.mask;
  const std::int64_t h = g * (p.heads / p.kv_heads);
  return mask.data[broadcast_offset(mask.size, mask.stride, b, h, 0, j)] != 0;
}

struct Range {
  std::int64_t begin, count;
};

// Of a box of x[B, G, M].
double sum_of(const double* x, const Extents& size, const Range& batch,
              const Range& heads, const Range& rows) {
  double sum = 0;
  for (std::int64_t b = 0; b < batch.count; ++b)
    for (std::int64_t g = 0; g < heads.count; ++g)
      for (std::int64_t j = 0; j < rows.count; ++j)
        sum += x[((batch.begin + b) * size[1] + heads.begin + g) * size[2] +
                 rows.begin + j];
  return sum;
}

}  // namespace

void check_decay_values(const char* op, const Problem& p) {
  if (!p.decays()) return;
  const ConstTensor& t = *p.in.log_decay;
  for (std::int64_t b = 0; b < t.size[0]; ++b) {
    for (std::int64_t g = 0; g < t.size[1]; ++g) {
      for (std::int64_t j = 0; j < t.size[2]; ++j) {
        const double x =
            load_element(t.data, t.dtype, row_offset(t.stride, b, g, j));
        if (x <= 0) continue;
        std::ostringstream message;
        message << '[' << op << "] log_decay[" << b << ", " << g << ", " << j
                << "] " << x << " is not <= 0";
        throw std::invalid_argument(message.str());
      }
    }
  }
}

double log_decay_at(const Problem& p, const Sequence& s, std::int64_t g,
                    std::int64_t j) {
  const ConstTensor& t = *p.in.log_decay;
  return load_element(
      t.data, t.dtype,
      broadcast_offset(t.size, t.stride, s.batch, g, s.k_begin + j, 0));
}

void find_decay(const Problem& p, std::int64_t b, std::int64_t g,
                double* factor, double* n) {
  const Sequence s = p.sequence(b);
  double last_log = 0, last_factor = 1, count = 0;
  for (std::int64_t j = 0; j < s.m; ++j) {
    factor[j] = 1;
    if (p.heads > 0 && is_kept(p, b, g, j)) {
      const double log_factor = log_decay_at(p, s, g, j);
      if (log_factor != last_log) {
        last_log = log_factor;
        last_factor = std::exp(log_factor);
      }
      factor[j] = last_factor;
      count = count * last_factor * last_factor + 1;
    }
    n[j] = count;
  }
}

void find_decay_gradient(const Problem& p, std::int64_t b, std::int64_t g,
                         const DecayPulls& pulls) {
  const Sequence s = p.sequence(b);
  const TimeLine line(p, s);
  const bool sum = p.activation.divisor == Divisor::kSum;
  const std::int64_t members = p.heads / p.kv_heads;
  double crossing = 0;  // by all pairs of a row from j on and a key before it
  double by_n = 0;      // of the rows from j on, faded twice
  for (std::int64_t j = s.m - 1; j >= 0; --j) {
    // Rows whose last key is j: one, but those behind the last key.
    const std::int64_t end =
        j + 1 == s.m ? s.n : std::min(s.n, j + 1 - line.shift);
    double rows = 0;
    for (std::int64_t i = std::max<std::int64_t>(j - line.shift, 0);
         i < end && !sum; ++i)
      for (std::int64_t m = 0; m < members; ++m)
        rows += pulls.row_pull[p.row_index(b, g * members + m, i)];
    const double factor = pulls.factor[j];
    if (pulls.n[j] > 0)
      by_n += rows * row_scale_slope(p.activation, pulls.n[j]);
    crossing += rows - pulls.pull[j];
    const bool open = factor > 0 && is_kept(p, b, g, j);
    pulls.pull[j] = open ? crossing + 2 * (pulls.n[j] - 1) * by_n : 0;
    by_n *= factor * factor;
    if (factor == 0) crossing = 0;
  }
}

std::int64_t store_decay_gradient(const Problem& p, const double* gradient,
                                  const Tensor& to) {
  const Extents& k = p.in.k.size;
  std::int64_t bad = 0;
  const auto range = [&](std::size_t i, std::int64_t at) {
    return to.size[i] == 1 ? Range{0, k[i]} : Range{at, 1};
  };
  for (std::int64_t b = 0; b < to.size[0]; ++b) {
    for (std::int64_t g = 0; g < to.size[1]; ++g) {
      for (std::int64_t j = 0; j < to.size[2]; ++j) {
        const double sum =
            sum_of(gradient, k, range(0, b), range(1, g), range(2, j));
        bad += std::isfinite(sum) ? 0 : 1;
        store_element(to.data, to.dtype, row_offset(to.stride, b, g, j), sum);
      }
    }
  }
  return bad;
}

double row_scale_slope(const Activation& activation, double n) {
  if (activation.divisor == Divisor::kSqrtN) return -0.5 / n;
  return activation.divisor == Divisor::kN ? -1 / n : 0;
}

}  // namespace polyattn
