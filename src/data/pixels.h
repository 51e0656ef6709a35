// Images read pixel by pixel, as sequences of grey values: the task Image of
// Long Range Arena.
#pragma once

#include "data/load.h"
#include "data/sets.h"

namespace polyattn::data {

// Row after row; of colours 0.299 red, 0.587 green and 0.114 blue, rounded. The
// images have one channel or three. Black is a token like any other.
SequenceSet grey_pixels(const ImageSet& images);

}  // namespace polyattn::data
