// Fewer points of long curves, honestly: a spike that a reader would want to
// see is never what is left out.
//
// The steps are cut into stretches of equal length, and of each stretch the
// records with the smallest and the largest value of each deciding column are
// kept, so every kept point is a real record, and the envelope of the curve is
// that of all records. The first deciding column (the loss) gets half of the
// points, the others share the rest. The first and the last record are always
// kept, and so are those with a value that is not finite; only if these are
// more than a quarter of the points, the first of each stretch stands for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace polyattn::report {

// Records of equal width with ascending steps.
class Rows {
 public:
  explicit Rows(std::size_t width) : width_(width) {}

  std::size_t size() const { return steps_.size(); }
  std::size_t width() const { return width_; }
  std::int64_t step(std::size_t row) const { return steps_[row]; }
  double value(std::size_t row, std::size_t column) const {
    return values_[row * width_ + column];
  }

  void add(std::int64_t step, std::span<const double> values);
  // Ascending indices.
  void keep_only(std::span<const std::size_t> rows);

 private:
  std::size_t width_;
  std::vector<std::int64_t> steps_;
  std::vector<double> values_;
};

// The rows to keep, ascending: at most `limit` (2 if that is less), all if
// there are no more. `deciding` are columns, the most important first.
std::vector<std::size_t> thinned(const Rows& rows,
                                 std::span<const std::size_t> deciding,
                                 std::size_t limit);

// Rows of which so many are added that they cannot all be held: whenever
// `capacity` is reached, they are thinned to half of it.
class ThinTable {
 public:
  ThinTable(std::size_t width, std::vector<std::size_t> deciding,
            std::size_t capacity)
      : rows_(width), deciding_(std::move(deciding)), capacity_(capacity) {}

  // False, and nothing is added, if the step is not beyond the last one.
  bool add(std::int64_t step, std::span<const double> values);

  const Rows& rows() const { return rows_; }
  // All that were ever added.
  std::size_t total() const { return total_; }
  std::vector<std::size_t> thinned_to(std::size_t limit) const {
    return thinned(rows_, deciding_, limit);
  }

 private:
  Rows rows_;
  std::vector<std::size_t> deciding_;
  std::size_t capacity_;
  std::size_t total_ = 0;
};

}  // namespace polyattn::report
