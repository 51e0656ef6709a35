#include "report/thin.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace polyattn::report {
namespace {

constexpr std::size_t kNoRow = std::numeric_limits<std::size_t>::max();

class Thinning {
 public:
  explicit Thinning(const Rows& rows)
      : rows_(rows),
        keep_(rows.size(), false),
        first_(rows.step(0)),
        length_(static_cast<double>(rows.step(rows.size() - 1)) -
                static_cast<double>(first_) + 1) {
    keep(0);
    keep(rows.size() - 1);
  }

  std::size_t count() const { return count_; }

  void keep(std::size_t row) {
    if (row == kNoRow || keep_[row]) return;
    keep_[row] = true;
    ++count_;
  }

  // Steps grow, so that a stretch is a run of rows.
  std::size_t stretch(std::size_t row, std::size_t stretches) const {
    const double share =
        (static_cast<double>(rows_.step(row)) - static_cast<double>(first_)) /
        length_;
    return std::min(
        static_cast<std::size_t>(share * static_cast<double>(stretches)),
        stretches - 1);
  }

  // At most two rows a stretch.
  void keep_extremes(std::size_t column, std::size_t stretches);
  // At most so many rows.
  void keep_not_finite(std::span<const std::size_t> columns, std::size_t most);

  std::vector<std::size_t> kept() const {
    std::vector<std::size_t> rows;
    rows.reserve(count_);
    for (std::size_t i = 0; i < keep_.size(); ++i) {
      if (keep_[i]) rows.push_back(i);
    }
    return rows;
  }

 private:
  const Rows& rows_;
  std::vector<bool> keep_;
  std::int64_t first_;
  double length_;
  std::size_t count_ = 0;
};

void Thinning::keep_extremes(std::size_t column, std::size_t stretches) {
  if (stretches == 0) return;
  std::size_t smallest = kNoRow, largest = kNoRow, current = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::size_t here = stretch(i, stretches);
    if (here != current) {
      keep(smallest);
      keep(largest);
      smallest = largest = kNoRow;
      current = here;
    }
    const double value = rows_.value(i, column);
    if (!std::isfinite(value)) continue;
    if (smallest == kNoRow || value < rows_.value(smallest, column)) {
      smallest = i;
    }
    if (largest == kNoRow || value > rows_.value(largest, column)) largest = i;
  }
  keep(smallest);
  keep(largest);
}

void Thinning::keep_not_finite(std::span<const std::size_t> columns,
                               std::size_t most) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (std::any_of(columns.begin(), columns.end(), [&](std::size_t column) {
          return !std::isfinite(rows_.value(i, column));
        })) {
      found.push_back(i);
    }
  }
  const bool all = found.size() <= most;
  std::size_t last = kNoRow;
  for (const std::size_t row : found) {
    const std::size_t here = all || most == 0 ? 0 : stretch(row, most);
    if (all || (most > 0 && here != last)) keep(row);
    last = here;
  }
}

}  // namespace

void Rows::add(std::int64_t step, std::span<const double> values) {
  steps_.push_back(step);
  values_.insert(values_.end(), values.begin(), values.end());
}

void Rows::keep_only(std::span<const std::size_t> rows) {
  std::size_t next = 0;
  for (const std::size_t row : rows) {
    steps_[next] = steps_[row];
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(row * width_),
                width_,
                values_.begin() + static_cast<std::ptrdiff_t>(next * width_));
    ++next;
  }
  steps_.resize(next);
  values_.resize(next * width_);
}

std::vector<std::size_t> thinned(const Rows& rows,
                                 std::span<const std::size_t> deciding,
                                 std::size_t limit) {
  limit = std::max<std::size_t>(limit, 2);
  if (rows.size() <= limit) {
    std::vector<std::size_t> all(rows.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }
  Thinning thinning(rows);
  thinning.keep_not_finite(deciding, (limit - thinning.count()) / 4);
  const std::size_t others = deciding.empty() ? 0 : deciding.size() - 1;
  const std::size_t left = limit - thinning.count();
  if (!deciding.empty()) {
    thinning.keep_extremes(deciding[0], left / (others > 0 ? 4 : 2));
  }
  for (std::size_t i = 1; i <= others; ++i) {
    const std::size_t remaining = others - i + 1;
    thinning.keep_extremes(deciding[i],
                           (limit - thinning.count()) / (2 * remaining));
  }
  return thinning.kept();
}

bool ThinTable::add(std::int64_t step, std::span<const double> values) {
  if (rows_.size() > 0 && step <= rows_.step(rows_.size() - 1)) return false;
  rows_.add(step, values);
  ++total_;
  if (rows_.size() >= capacity_) {
    rows_.keep_only(thinned_to(capacity_ / 2));
  }
  return true;
}

}  // namespace polyattn::report
