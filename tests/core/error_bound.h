// How far a kernel may be from the reference, and the comparison.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "core/random_inputs.h"
#include "polyattn/attention.h"

namespace polyattn::test {

// |kernel - want| is at most this, element by element, where `want` is the
// reference's answer and the kernel's outputs are of type `storage`. Derived in
// error_bound.cc.
Outputs error_bound(const Instance& instance, const Outputs& want,
                    DType storage);

// Half a unit in the last place of x, if storing rounds at all. From double the
// 16-bit types are reached by way of f32.
double storage_error(double x, DType storage, DType compute);

// Each reports the element that is worst.
void expect_within(const char* what, const Buffer& got, const Buffer& want,
                   const Buffer& bound);
void expect_rows_within(const Outputs& got, const Outputs& want,
                        const Outputs& bound);
void expect_stats_within(const Outputs& got, const Outputs& want,
                         const Outputs& bound);

// NaN where where(index) says so, and nowhere else.
template <typename Where>
void expect_nan_where(const Buffer& got, const Where& where) {
  std::int64_t wrong = 0;
  for_each_index(got.tensor.size, [&](const Extents& x) {
    if (std::isnan(at(got.tensor, x)) != where(x)) ++wrong;
  });
  EXPECT_EQ(wrong, 0) << "elements of " << element_count(got.tensor.size);
}

// A bound that anything would meet tests nothing: in the mean the bound is
// below `ratio` times the values.
void expect_sharp(const char* what, const Buffer& want, const Buffer& bound,
                  double ratio);

}  // namespace polyattn::test
