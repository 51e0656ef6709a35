// Pairs of passages of the State of the Union addresses: are both of one
// address? A task of retrieval from data that everyone has.
#pragma once

#include <string>
#include <vector>

#include "data/load.h"
#include "data/sets.h"

namespace polyattn::data {

// Passages begin at multiples of source.length in an address, so that none
// overlaps another. The first of a pair is any; every other pair has a second
// one of the same address, the rest one of any other. So long addresses are no
// more often in the ones than in the others. No pair is there twice. Every
// tenth address is for testing, the rest for training. Throws DataError.
SequenceSplits make_sotu_pairs(const std::vector<std::string>& addresses,
                               const SotuPairsSource& source);

}  // namespace polyattn::data
