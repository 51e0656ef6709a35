// Expressions of ListOps drawn at random, the same for the same numbers
// wherever they are drawn.
#pragma once

#include "data/load.h"
#include "data/sets.h"

namespace polyattn::data {

// Changes with every change that draws other expressions for the same numbers:
// what was kept under another version is not read.
inline constexpr int kListOpsVersion = 1;

// Expressions as Long Range Arena generates them: a node is a list in one of
// four cases and a digit otherwise, and always a digit ten levels down; a list
// has 2 to 10 arguments. Those of the wrong length and those that were there
// before are thrown away. The test set comes first, so that it does not depend
// on train_count. `source.path` is not used. Throws DataError if there are too
// few expressions of these lengths.
SequenceSplits generate_listops(const ListOpsSource& source);

}  // namespace polyattn::data
