// maps.json, as a finished run leaves it.
#include "train/attention_maps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "train/small_tasks.h"
#include "train/trainer.h"

namespace polyattn::train::attention_maps_test {

using testing::TemporaryFolder;

base::Json maps_of(const run::Config& config,
                   const std::shared_ptr<const TaskData>& data) {
  const TemporaryFolder folder;
  Job job;
  job.config = config;
  job.data = data;
  job.folder = folder / "run";
  train(job);
  const auto file = folder / "run/maps.json";
  if (!std::filesystem::exists(file)) return nullptr;
  return base::Json::parse(test::read_text(file));
}

std::vector<double> weights_of(const base::Json& map) {
  const auto text = map.at("values").get<std::string>();
  const auto scale = map.at("scale").get<double>();
  std::vector<double> weights;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    group = group << 6 | static_cast<std::uint32_t>(letters.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    weights.push_back(static_cast<std::int8_t>(group >> bits & 255U) * scale /
                      127);
  }
  return weights;
}

TEST(AttentionMaps, OfImagesHaveThePicturesAndEveryHead) {
  const auto data = testing::image_data();
  const base::Json json = maps_of(testing::image_config(), data);
  EXPECT_EQ(json.at("rows"), 16);
  EXPECT_EQ(json.at("columns"), 16);
  EXPECT_EQ(json.at("class_token"), false);
  ASSERT_EQ(json.at("inputs").size(), 3U);
  const auto& set = std::get<data::ImageSplits>(*data).test;
  const auto& image = json.at("inputs")[1].at("image");
  EXPECT_EQ(image.at("patch"), 2);
  EXPECT_EQ(image.at("pixels").get<std::string>().size(), (64U + 2) / 3 * 4);
  EXPECT_EQ(json.at("inputs")[1].at("label"),
            std::string(1, static_cast<char>('a' + set.labels[1])));
  ASSERT_EQ(json.at("maps").size(), 3U * 2 * 2);
  for (const auto& map : json.at("maps")) {
    const auto weights = weights_of(map);
    ASSERT_EQ(weights.size(), 256U);
    for (std::size_t row = 0; row < 16; ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < 16; ++i) {
        EXPECT_GE(weights[16 * row + i], 0);
        sum += weights[16 * row + i];
      }
      // A step of the bytes is scale / 127.
      EXPECT_NEAR(sum, 1, 16 * map.at("scale").get<double>() / 127 / 2);
    }
  }
}

TEST(AttentionMaps, OfTextsAreCausalAndSigned) {
  run::Config config = testing::text_config();
  config.model.activation = "x^3/sqrt(N)";
  const base::Json json = maps_of(config, testing::text_data());
  EXPECT_EQ(json.at("rows"), 24);
  EXPECT_EQ(json.at("inputs")[0].at("tokens").size(), 24U);
  EXPECT_EQ(json.at("inputs")[0].at("tokens")[1], "h");  // "the quick ..."
  bool negative = false;
  for (const auto& map : json.at("maps")) {
    const auto weights = weights_of(map);
    for (std::size_t row = 0; row < 24; ++row) {
      for (std::size_t i = 0; i < 24; ++i) {
        negative = negative || weights[24 * row + i] < 0;
        if (i > row) {
          EXPECT_EQ(weights[24 * row + i], 0);
        }
      }
    }
  }
  EXPECT_TRUE(negative);
}

TEST(AttentionMaps, OfSequencesHaveNoPadding) {
  const base::Json json =
      maps_of(testing::sequence_config(), testing::sequence_data());
  ASSERT_EQ(json.at("inputs").size(), 1U);
  EXPECT_EQ(json.at("inputs")[0].at("tokens").size(),
            json.at("rows").get<std::size_t>());
}

TEST(AttentionMaps, LongSequencesShowFewerLayersAndHeads) {
  run::Config config = testing::text_config();
  config.task.context = 200;  // 40,000 bytes a matrix: two fit
  config.train.steps = 1;
  const base::Json json = maps_of(config, testing::text_data());
  EXPECT_EQ(json.at("inputs").size(), 1U);
  EXPECT_EQ(json.at("maps").size(), 2U);
  config.task.context = 400;
  EXPECT_TRUE(maps_of(config, testing::text_data()).is_null());
}

}  // namespace polyattn::train::attention_maps_test
