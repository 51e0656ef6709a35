// Validation data: a part of the training data that is held out, so that what
// is chosen is not chosen by the test set.
#pragma once

#include "data/sets.h"

namespace polyattn::data {

// Moves a share of splits.train to splits.validation. Of images and sequences
// the examples are drawn at random, so that a set sorted by class does not lose
// classes, but always the same ones of as many examples; the rest keep their
// order. Of a text it is the last part, directly before the test part, from the
// line that begins nearest. Throws DataError if one of the two has nothing.
void hold_out(ImageSplits& splits, double share);
void hold_out(ImageFileSplits& splits, double share);
void hold_out(SequenceSplits& splits, double share);
void hold_out(ProbeSplits& splits, double share);
void hold_out(TextSplits& splits, double share);

}  // namespace polyattn::data
