// How the figures of a comparison, their differences and intervals are written.
#pragma once

#include <string>

#include "train/run/comparison.h"

namespace polyattn::run {

struct FigureStyle {
  double factor;  // 100 for per cent
  int decimals;
  const char* before;  // "reaches a loss of 1.2"
  const char* unit;
  const char* difference_unit;
  bool lower_is_better;
  double worth_telling;  // a difference that a reader would like to be told
};

FigureStyle style_of(Figure figure);

// Differences in the last digit get one more, so that no "0.0 less" is read.
int decimals_for(const Difference& difference, const FigureStyle& style);

std::string difference_text(const Difference& difference,
                            const FigureStyle& style);  // "0.3 points less"
std::string signed_text(const Difference& difference,
                        const FigureStyle& style);  // "-0.3"
// "-0.7 to +0.1", for a difference that has an interval.
std::string interval_text(const Difference& difference,
                          const FigureStyle& style);

// What the intervals are, in a few words: "95 % intervals, all at once, seed
// variance pooled over 4 activations". Empty if there are none.
std::string interval_note(const Comparison& comparison);

}  // namespace polyattn::run
