// A statement, and the measurements that it was held against.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "theory/fit.h"
#include "theory/summary.h"

namespace polyattn::theory {

enum class Status : std::uint8_t {
  kTheorem,      // proven: a measurement may contradict it
  kObservation,  // outside of what is proven: there is nothing to contradict
};

// How the measured value must lie to the expected one.
enum class Relation : std::uint8_t { kAtMost, kAtLeast, kEqual };

enum class Verdict : std::uint8_t {
  kHolds,
  kFails,
  // A few matrices may carry the mean, so the sample says nothing.
  kUndecided,
  kObserved,  // of an observation
};

struct Row {
  // Rows of one series are one line of the table, the one nearest to failing,
  // except those that are to stand alone. Of observations the table has those
  // alone.
  std::string series = {};
  bool alone = false;
  std::string subject = {};    // formula, or kind of scores
  std::int64_t tokens = 0;     // N
  std::int64_t tokens_to = 0;  // of an exponent: from N = tokens to this
  std::int64_t samples = 0;    // matrices, or evaluations of a search
  Relation relation = Relation::kEqual;
  double expected = 0;
  double measured = 0;
  std::optional<Interval> interval = {};  // of the measured value, 99 %
  // Share of the permitted distance that was used up: above 1 it fails.
  double strain = 0;
  Verdict verdict = Verdict::kHolds;
};

struct Claim {
  std::string id = {};
  std::string statement = {};
  Status status = Status::kTheorem;
  std::string computed = {};  // what was measured, and how
  std::vector<Row> rows = {};
  std::vector<std::string> notes = {};
};

// No row fails.
bool holds(const Claim& claim);

// A bound, to a relative error of rounding.
void judge_bound(Row& row, double rounding);

// An equality without chance, to that distance.
void judge_equality(Row& row, double allowed);

// The mean of squared norms against its expectation.
struct MeanOfSquares {
  std::span<const double> values = {};  // one of each matrix
  double expected = 0;                  // of a value
  std::optional<double> variance = {};  // of a value, where it is known exactly
  double rounding = 0;                  // relative error of a value
};

// Fills samples, expected, measured and interval, as root mean squares, and
// judges at kDecisionTail. With a known variance by Catoni's estimate; of too
// few matrices for that by the plain mean, if its relative error is so small
// that each matrix must be an average over many scores itself, hence nearly
// normal. Without by Hall's interval, if the sample speaks for itself.
void judge_mean(Row& row, const MeanOfSquares& mean);

// What a fit needs of that row.
LengthNorm length_norm(const Row& row, const MeanOfSquares& mean);

// Fills tokens, tokens_to, expected, measured and interval. The expected slope
// is that of the expected norms between the same lengths. Judged by the normal
// distribution: the errors of the norms are known, scatter only widens them.
void judge_exponent(Row& row, std::span<const LengthNorm> norms);

}  // namespace polyattn::theory
