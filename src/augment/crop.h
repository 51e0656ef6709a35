// Parts of an image drawn at random: what is cut out, and what is erased.
#pragma once

#include <optional>

#include "augment/resize.h"
#include "base/random.h"

namespace polyattn::augment {

// Parts of `scale` of the area at least, with sides from 1 : ratio to ratio
// : 1.
struct PartOptions {
  double least = 0.08, most = 1;               // share of the area
  double lowest = 3.0 / 4, highest = 4.0 / 3;  // width over height
};

// A part of an image of width x height to be made the whole: its area is drawn
// evenly, its sides evenly on a logarithmic scale. If ten draws do not fit in,
// the largest part in the middle whose sides are allowed.
Window draw_crop(std::int64_t width, std::int64_t height,
                 const PartOptions& options, base::Random& random);

// The same for a part to be erased, which is smaller than the image; nothing if
// ten draws do not fit.
std::optional<Window> draw_erased(std::int64_t width, std::int64_t height,
                                  base::Random& random);

// A part of an image to be replaced by another's: around a place that is drawn
// evenly, 1 - share of the area, and cut off at the borders.
Window draw_cutmix(std::int64_t width, std::int64_t height, double share,
                   base::Random& random);

}  // namespace polyattn::augment
