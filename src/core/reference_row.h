// A row of the attention matrix as the definition has it, in double precision:
// what reference.cc and reference_double.cc share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/problem.h"

namespace polyattn::reference {

// Row i of the attention matrix of one (batch, head): one entry in each vector
// for each key that the row sees.
struct Row {
  std::vector<std::int64_t> key;  // counted from the start of the sequence
  std::vector<double> score;
  std::vector<double> weight;     // before the divisor
  std::vector<double> attention;  // A_ij
  std::vector<double> slope;      // derivative of A_ij by its score alone
  std::vector<double> curvature;  // the derivative of that
  std::vector<double> fade;       // of decay; 1 without
  std::vector<double> kept;       // what dropout multiplies A_ij by
  double n = 0;                   // N of a formula
  RowState state;
};

// Where row i is.
struct Place {
  std::int64_t b, h, i;
};

double dot(const ConstTensor& x, std::int64_t x_offset, const ConstTensor& y,
           std::int64_t y_offset);

// Elements of row i of q and what is laid out like it, and of key j of its
// sequence.
std::int64_t query_offset(const Problem& p, const Extents& stride, Place at);
std::int64_t key_offset(const Problem& p, const Extents& stride, Place at,
                        std::int64_t j);

void find_row(const Problem& p, Place at, Row& row);

// Calls body(place, row) for every row of every sequence and head.
template <typename Body>
void for_each_row(const Problem& p, const Body& body) {
  Row row;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads; ++h) {
      for (std::int64_t i = 0; i < p.sequence(b).n; ++i) {
        find_row(p, {b, h, i}, row);
        body(Place{b, h, i}, row);
      }
    }
  }
}

// A gradient while it is summed up: dense, in double precision.
struct Sum {
  explicit Sum(const Extents& like)
      : size(like),
        stride(contiguous_strides(like)),
        value(static_cast<std::size_t>(element_count(like))) {}

  // Adds factor times the width elements of x that begin at x_offset.
  void add(std::int64_t offset, double factor, const ConstTensor& x,
           std::int64_t x_offset);
  void store(const std::optional<Tensor>& to) const;

  Extents size, stride;
  std::vector<double> value;
};

}  // namespace polyattn::reference
