// Attention maps of models whose layers differ in what their matrices are over:
// windows of a map of tokens, channels, a class token.
//
//   layers   [{layer, kind, stage, rows (N), columns (M)}], and where a row or
//            column has a place in the image
//              patch     the pixels of its side
//              prefix    how many columns come before the patches (class)
//              windows   {height, width, side, down, right}: the map in tokens,
//                        the side of a window, and how far windows are shifted
//   maps     [{input, layer, head, window, scale, values}]; `window` where
//   there
//            are such, counted row by row
#pragma once

#include <cstdint>
#include <vector>

#include "polyattn/nn/attention_base.h"
#include "train/map_bytes.h"

namespace polyattn::train {

// Of layers that were watched while they saw `inputs` images of patches of so
// many pixels: as many of these, of layers, heads and windows, from the middle
// of the map on, as kMapBytes hold. Null if one matrix alone is larger.
base::Json layer_maps(const std::vector<nn::AttentionBase*>& layers,
                      std::int64_t inputs, std::int64_t patch);

}  // namespace polyattn::train
