// Attention matrices of a model on a few test examples, small enough to keep
// with a run: RUN/maps.json, for looking at.
//
//   inputs   [{label, kind: "image", image: {width, height, channels, patch,
//            pixels}} or {label, kind: "text", tokens: [text]}]
//   class_token, rows (N), columns; prefix, how many rows are before those of
//            the input, if they are more than the class token
//   maps     [{input, layer, head, scale, values}] (train/map_bytes.h)
//
// Where layers differ in what their matrices are over, `layers` says so in the
// place of class_token, prefix, rows and columns (train/layer_maps.h).
#pragma once

#include "train/examples.h"
#include "train/network.h"
#include "train/run/config.h"
#include "train/run/records.h"

namespace polyattn::train {

// Up to three inputs, and as many layers and heads as kMapBytes hold. Null
// where there is nothing to keep: without attention, or where one matrix alone
// is larger than that.
base::Json attention_maps(Network& network, const Examples& examples,
                          const run::Config& config);

}  // namespace polyattn::train
