// Over which activations the variance of the seeds may be pooled, and what it
// is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace polyattn::run {

// The finite figure of each seed.
using SeedFigures = std::map<std::int64_t, double>;

// A row an activation: its figure for each seed of the reference, or NaN if it
// has none.
using Layout = std::vector<std::vector<double>>;

Layout layout_of(std::size_t reference, const std::vector<SeedFigures>& rows);

struct Residual {
  double squares = 0;
  int degrees = 0;  // of freedom
  double variance() const { return degrees > 0 ? squares / degrees : 0; }
};

// What the least squares fit figure = activation + seed leaves of these rows.
Residual residual_of(const Layout& layout,
                     const std::vector<std::size_t>& rows);

// Those of `rows`, the reference among them, whose variances are not out of
// line: the worst is removed until nothing is. Empty if the reference is out
// of line, or fewer than two others are left. No variance counts as less than
// `least`.
std::vector<std::size_t> pool_of(std::size_t reference, const Layout& layout,
                                 std::vector<std::size_t> rows, double least);

}  // namespace polyattn::run
