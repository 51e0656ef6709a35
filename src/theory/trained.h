// Norms of the layers of a trained model beside what theory says of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace polyattn::theory {

// Measured in attention without dropout, of one head or an average of heads.
struct MeasuredLayer {
  std::string name = {};
  std::string activation = {};  // formula
  std::int64_t tokens = 0;      // N
  std::int64_t width = 0;       // D
  bool causal = false;
  double weight_norm = 0;    // ||A||_F
  double jacobian_norm = 0;  // ||dA/dS||_F
  double max_abs_score = 0;
};

struct TrainedRow {
  MeasuredLayer layer = {};
  // The largest norms that are possible with scores up to max_abs_score; for
  // softmax with any. Empty where none is known.
  std::optional<double> weight_bound = {}, jacobian_bound = {};
  // Root of the expected square for Gaussian queries and keys, where known. A
  // trained layer need not have it: the ratio says how far it went.
  std::optional<double> weight_expected = {}, jacobian_expected = {};
  bool within_bounds = true;
};

// In the order of the layers. Throws FormulaError for a bad formula, and
// std::invalid_argument ("[theory] NAME: ...") for what cannot be.
std::vector<TrainedRow> trained_rows(const std::vector<MeasuredLayer>& layers);

// For a terminal.
std::string trained_table(const std::vector<TrainedRow>& rows);

}  // namespace polyattn::theory
