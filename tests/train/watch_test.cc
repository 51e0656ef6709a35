// What norms_record says of layers that differ.
#include "train/watch.h"

#include <gtest/gtest.h>

namespace polyattn::train {
namespace watch_test {
namespace {

LayerNorms layer(const std::string& kind, std::int64_t stage,
                 std::int64_t tokens = 16) {
  LayerNorms norms;
  norms.kind = kind;
  norms.stage = stage;
  norms.tokens = tokens;
  norms.weight_mean = {1, 2};
  return norms;
}

TEST(NormsRecord, SaysNothingOfLayersThatAreAlike) {
  for (const std::int64_t stage : {0, 1}) {
    const auto record =
        norms_record(3, 64, {layer("token", stage), layer("token", stage)});
    EXPECT_FALSE(record.contains("layer_kind"));
    EXPECT_FALSE(record.contains("layer_stage"));
    EXPECT_FALSE(record.contains("layer_tokens"));
    EXPECT_EQ(record["weight_mean"].size(), 2U);
  }
  EXPECT_FALSE(norms_record(3, 64, {}).contains("layer_kind"));
}

TEST(NormsRecord, NamesKindsAndStagesThatDiffer) {
  const auto stages =
      norms_record(3, 64, {layer("window", 0), layer("window", 1)});
  EXPECT_EQ(stages["layer_kind"], base::Json({"window", "window"}));
  EXPECT_EQ(stages["layer_stage"], base::Json({0, 1}));
  const auto kinds =
      norms_record(3, 64, {layer("channel", 0), layer("class", 0)});
  EXPECT_EQ(kinds["layer_kind"], base::Json({"channel", "class"}));
  EXPECT_FALSE(kinds.contains("layer_stage"));
  EXPECT_FALSE(kinds.contains("layer_tokens"));
  const auto tokens =
      norms_record(3, 64, {layer("channel", 0, 16), layer("channel", 0, 8)});
  EXPECT_EQ(tokens["layer_tokens"], base::Json({16, 8}));
}

}  // namespace
}  // namespace watch_test
}  // namespace polyattn::train
