// Attention matrices of a model on a few test examples, small enough to keep
// with a run: RUN/maps.json, for looking at.
//
//   inputs   [{label, kind: "image", image: {width, height, channels, patch,
//            pixels}} or {label, kind: "text", tokens: [text]}]
//   class_token, rows (N), columns; prefix, how many rows are before those of
//            the input, if they are more than the class token
//   maps     [{input, layer, head, scale, values}]: values are the base64 of
//            N x N signed bytes, and a weight is byte * scale / 127
#pragma once

#include "train/examples.h"
#include "train/network.h"
#include "train/run/config.h"
#include "train/run/records.h"

namespace polyattn::train {

// Up to three inputs, and as many layers and heads as kMapBytes hold. Null
// where there is nothing to keep: without attention over tokens, or where one
// matrix alone is larger than that.
base::Json attention_maps(Network& network, const Examples& examples,
                          const run::Config& config);

inline constexpr std::int64_t kMapBytes = 96 * 1024;

}  // namespace polyattn::train
