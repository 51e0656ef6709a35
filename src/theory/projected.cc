#include "theory/projected.h"

#include <cmath>
#include <cstddef>

namespace polyattn::theory {
namespace {

using Numbers = std::vector<double>;

double dot(const double* a, const double* b, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// [n, m] = [n, inner] [inner, m]
Numbers product(const Numbers& a, const Numbers& b, std::size_t inner) {
  const std::size_t n = a.size() / inner, m = b.size() / inner;
  Numbers c(n * m);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < inner; ++k) {
      const double factor = a[i * inner + k];
      for (std::size_t j = 0; j < m; ++j) c[i * m + j] += factor * b[k * m + j];
    }
  }
  return c;
}

Numbers transposed(const Numbers& a, std::size_t columns) {
  const std::size_t rows = a.size() / columns;
  Numbers b(a.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      b[j * rows + i] = a[i * columns + j];
    }
  }
  return b;
}

// [N]: squared lengths of rows.
Numbers lengths_sq(const Numbers& rows, std::size_t columns) {
  Numbers result(rows.size() / columns);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double* row = &rows[i * columns];
    result[i] = dot(row, row, columns);
  }
  return result;
}

Numbers draw_tokens(const ProjectedRequest& r, Random& random) {
  const auto n = static_cast<std::size_t>(r.setting.tokens);
  const auto c = static_cast<std::size_t>(r.setting.channels);
  const auto draw = [&] {
    return r.model.heavy_tails ? random.heavy_tailed() : random.normal();
  };
  Numbers x(n * c);
  for (double& value : x) value = draw();
  if (r.model.correlation == 0) return x;
  const double own = std::sqrt(1 - r.model.correlation);
  const double shared = std::sqrt(r.model.correlation);
  for (std::size_t k = 0; k < c; ++k) {
    const double common = draw();
    for (std::size_t i = 0; i < n; ++i) {
      x[i * c + k] = own * x[i * c + k] + shared * common;
    }
  }
  return x;
}

// One draw, with what every score of a row or column shares. With
// M = W_Q W_K^T / sqrt(D), the score is x_i^T M x_j, and its gradient is
// M x_j for x_i and M^T x_i for x_j.
struct Projected {
  std::size_t n = 0, d = 0;
  Numbers q;             // [N, D], times 1/sqrt(D)
  Numbers k_columns;     // [D, N]
  Numbers query_sq;      // [N]: |q_i|^2 / D
  Numbers key_sq;        // [N]: |k_j|^2 / D
  Numbers left_sq;       // [N]: |M x_j|^2
  Numbers right_sq;      // [N]: |M^T x_i|^2
  Numbers own_products;  // [N]: (M x_i) . (M^T x_i)
};

Projected draw_projected(const ProjectedRequest& r, std::int64_t sample) {
  Random random({r.seed, r.stream, r.setting.tokens, sample});
  const auto c = static_cast<std::size_t>(r.setting.channels);
  Projected p;
  p.n = static_cast<std::size_t>(r.setting.tokens);
  p.d = static_cast<std::size_t>(r.setting.width);
  Numbers w_q(c * p.d), w_k(c * p.d);
  for (double& value : w_q) value = r.setting.projection_std * random.normal();
  for (double& value : w_k) value = r.setting.projection_std * random.normal();
  const Numbers x = draw_tokens(r, random);
  const double scale = 1 / std::sqrt(static_cast<double>(r.setting.width));
  for (double& value : w_q) value *= scale;
  p.q = product(x, w_q, c);
  const Numbers k = product(x, w_k, c);
  const Numbers left = product(k, transposed(w_q, p.d), p.d);
  const Numbers right = product(p.q, transposed(w_k, p.d), p.d);
  p.query_sq = lengths_sq(p.q, p.d);
  p.key_sq = lengths_sq(k, p.d);
  for (double& value : p.key_sq) value /= static_cast<double>(r.setting.width);
  p.left_sq = lengths_sq(left, c);
  p.right_sq = lengths_sq(right, c);
  p.own_products.resize(p.n);
  for (std::size_t i = 0; i < p.n; ++i) {
    p.own_products[i] = dot(&left[i * c], &right[i * c], c);
  }
  p.k_columns = transposed(k, p.d);
  return p;
}

// Row i of the scores, [N]. Four columns at a time: half of the time would go
// into reading and writing the sums otherwise.
void score_row(const Projected& p, std::size_t i, Numbers& scores) {
  scores.assign(p.n, 0);
  const double* q = &p.q[i * p.d];
  const double* k = p.k_columns.data();
  double* s = scores.data();
  std::size_t d = 0;
  for (; d + 4 <= p.d; d += 4, k += 4 * p.n) {
    for (std::size_t j = 0; j < p.n; ++j) {
      s[j] += q[d] * k[j] + q[d + 1] * k[j + p.n] + q[d + 2] * k[j + 2 * p.n] +
              q[d + 3] * k[j + 3 * p.n];
    }
  }
  for (; d < p.d; ++d, k += p.n) {
    for (std::size_t j = 0; j < p.n; ++j) s[j] += q[d] * k[j];
  }
}

// For one power m of s^2: sums over the rows i, by column j, of s_ij^(2m) times
// 1, |q_i|^2 / D and |M^T x_i|^2; and of s_ii^(2m) (M x_i) . (M^T x_i).
struct PowerSums {
  Numbers plain, query, right;  // [N] each
  double own = 0;
};

void add_row(const Projected& p, std::size_t i, Numbers& squares,
             Numbers& powers, std::vector<PowerSums>& sums) {
  for (double& s : squares) s *= s;
  powers.assign(p.n, 1);
  for (PowerSums& sum : sums) {
    const double query = p.query_sq[i], right = p.right_sq[i];
    sum.own += powers[i] * p.own_products[i];
    for (std::size_t j = 0; j < p.n; ++j) {
      sum.plain[j] += powers[j];
      sum.query[j] += powers[j] * query;
      sum.right[j] += powers[j] * right;
      powers[j] *= squares[j];
    }
  }
}

double total(const Numbers& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// phi = x^p: phi^2 = s^(2p), phi'^2 = p^2 s^(2p - 2).
ProjectedNorms norms_of(const Projected& p, int degree,
                        const std::vector<PowerSums>& sums) {
  const PowerSums& lower = sums[static_cast<std::size_t>(degree - 1)];
  const double factor = static_cast<double>(degree) * degree;
  ProjectedNorms norms;
  norms.weight_sq = total(sums[static_cast<std::size_t>(degree)].plain);
  norms.jacobian_sq = factor * total(lower.plain);
  norms.query_sq = factor * dot(lower.plain.data(), p.key_sq.data(), p.n);
  norms.key_sq = factor * total(lower.query);
  norms.input_sq = factor * (dot(lower.plain.data(), p.left_sq.data(), p.n) +
                             total(lower.right) + 2 * lower.own);
  return norms;
}

}  // namespace

std::vector<std::vector<ProjectedNorms>> sample_projected(
    const ProjectedRequest& request, Parallel& parallel) {
  const auto degrees = static_cast<std::size_t>(request.max_degree);
  std::vector<std::vector<ProjectedNorms>> norms(degrees);
  for (auto& list : norms) {
    list.resize(static_cast<std::size_t>(request.samples));
  }
  parallel.run(request.samples, [&](std::int64_t sample, int) {
    const Projected p = draw_projected(request, sample);
    const Numbers zeros(p.n, 0);
    std::vector<PowerSums> sums(degrees + 1, {zeros, zeros, zeros});
    Numbers scores, powers;
    for (std::size_t i = 0; i < p.n; ++i) {
      score_row(p, i, scores);
      add_row(p, i, scores, powers, sums);
    }
    for (std::size_t degree = 1; degree <= degrees; ++degree) {
      norms[degree - 1][static_cast<std::size_t>(sample)] =
          norms_of(p, static_cast<int>(degree), sums);
    }
  });
  return norms;
}

}  // namespace polyattn::theory
