// maps.json, as a finished run leaves it.
#include "train/attention_maps.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "train/map_bytes.h"
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

// What they have of a pair's first sequence has no padding either.
TEST(AttentionMaps, OfPairsAreOfOneSequence) {
  const base::Json json = maps_of(testing::pair_config(), testing::pair_data());
  ASSERT_EQ(json.at("inputs").size(), 1U);
  const base::Json& tokens = json.at("inputs")[0].at("tokens");
  EXPECT_EQ(tokens.size(), json.at("rows").get<std::size_t>());
  EXPECT_EQ(tokens.size(), json.at("columns").get<std::size_t>());
  for (const base::Json& map : json.at("maps")) EXPECT_EQ(map.at("input"), 0);
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

std::shared_ptr<const TaskData> noise_images(std::int64_t side) {
  const auto noise = [&](std::int64_t count, std::uint64_t seed) {
    data::ImageSet set{.channels = 3, .height = side, .width = side};
    Random random(seed, Stream::kOrder, 0);
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t p = 0; p < 3 * side * side; ++p) {
        set.pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
      }
      set.labels.push_back(static_cast<std::int32_t>(i % 2));
    }
    return set;
  };
  return std::make_shared<const TaskData>(data::ImageSplits{
      .train = noise(8, 1), .test = noise(4, 2), .class_names = {"a", "b"}});
}

base::Json maps_of_model(const char* name, std::int64_t side) {
  run::Config config = run::default_config("cifar10", name);
  config.train.threads = 1;
  config.train.batch = 4;
  config.train.steps = 1;
  return maps_of(config, noise_images(side));
}

const base::Json& layer_of(const base::Json& json, const base::Json& map) {
  for (const auto& layer : json.at("layers")) {
    if (layer.at("layer") == map.at("layer")) return layer;
  }
  throw std::runtime_error("a map of no layer");
}

// Softmax's rows sum to 1, to half a step of the bytes for each weight.
void expect_rows_of_softmax(const base::Json& map, std::int64_t columns) {
  const auto weights = weights_of(map);
  const double step = map.at("scale").get<double>() / 127;
  const auto m = static_cast<std::size_t>(columns);
  for (std::size_t begin = 0; begin < weights.size(); begin += m) {
    double sum = 0;
    for (std::size_t i = 0; i < m; ++i) sum += weights[begin + i];
    EXPECT_NEAR(sum, 1, static_cast<double>(columns) * step / 2);
  }
}

// Where a token of a window is on the map, from the record alone.
std::array<std::int64_t, 2> place_of(const base::Json& windows,
                                     std::int64_t window, std::int64_t token) {
  const auto at = [&](const char* key) {
    return windows.at(key).get<std::int64_t>();
  };
  const std::int64_t side = at("side");
  const auto filled = [&](std::int64_t length) {
    return (length + side - 1) / side * side;
  };
  const std::int64_t height = filled(at("height")), width = filled(at("width"));
  const std::int64_t across = width / side;
  return {(window / across * side + token / side + at("down")) % height,
          (window % across * side + token % side + at("right")) % width};
}

// Tokens that the shift brought together from opposite edges do not see each
// other, those that are neighbours do: so the record says where they are.
void expect_neighbours(const base::Json& map, const base::Json& windows) {
  const auto weights = weights_of(map);
  const auto side = windows.at("side").get<std::int64_t>();
  const auto window = map.at("window").get<std::int64_t>();
  const std::int64_t n = side * side;
  ASSERT_EQ(weights.size(), static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) {
    double seen = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const auto a = place_of(windows, window, i);
      const auto b = place_of(windows, window, j);
      const bool near =
          std::abs(a[0] - b[0]) < side && std::abs(a[1] - b[1]) < side;
      const double weight = weights[static_cast<std::size_t>(i * n + j)];
      if (near) seen += weight;
      if (!near) {
        EXPECT_EQ(weight, 0) << i << ' ' << j;
      }
    }
    EXPECT_NEAR(seen, 1, 0.1);
  }
}

TEST(AttentionMaps, OfSwinAreOfItsWindows) {
  const base::Json json = maps_of_model("swin-tiny32", 16);
  EXPECT_FALSE(json.contains("rows"));
  ASSERT_EQ(json.at("layers").size(), 8U);
  const auto& shifted = json.at("layers")[1];
  EXPECT_EQ(shifted.at("kind"), "window");
  EXPECT_EQ(shifted.at("rows"), 16);
  EXPECT_EQ(shifted.at("patch"), 2);
  EXPECT_EQ(shifted.at("windows"), base::Json({{"height", 8},
                                               {"width", 8},
                                               {"side", 4},
                                               {"down", 2},
                                               {"right", 2}}));
  // The second stage has one window; the third fills up what it lacks.
  EXPECT_EQ(json.at("layers")[3].at("windows").at("down"), 0);
  EXPECT_EQ(json.at("layers")[6].at("stage"), 2);
  EXPECT_EQ(json.at("layers")[6].at("patch"), 8);
  EXPECT_EQ(json.at("layers")[6].at("windows").at("height"), 2);
  ASSERT_EQ(json.at("inputs").size(), 3U);
  // 2 blocks of 4 windows and 2 heads, 4 of 4 heads, 2 of 8.
  EXPECT_EQ(json.at("maps").size(), 3U * (2 * 4 * 2 + 4 * 4 + 2 * 8));
  for (const auto& map : json.at("maps")) {
    expect_neighbours(map, layer_of(json, map).at("windows"));
  }
}

TEST(AttentionMaps, OfXCiTAreOfChannelsAndTheClassToken) {
  const base::Json json = maps_of_model("xcit-tiny32", 16);
  ASSERT_EQ(json.at("layers").size(), 6U);
  const auto& channels = json.at("layers")[0];
  EXPECT_EQ(channels.at("kind"), "channel");
  EXPECT_EQ(channels.at("rows"), 24);
  EXPECT_EQ(channels.at("columns"), 24);
  EXPECT_FALSE(channels.contains("patch"));
  const auto& to_class = json.at("layers")[5];
  EXPECT_EQ(to_class.at("kind"), "class");
  EXPECT_EQ(to_class.at("rows"), 1);
  EXPECT_EQ(to_class.at("columns"), 17);
  EXPECT_EQ(to_class.at("prefix"), 1);
  EXPECT_EQ(to_class.at("patch"), 4);
  EXPECT_EQ(json.at("maps").size(), 3U * 4 * 6);
  for (const auto& map : json.at("maps")) {
    EXPECT_FALSE(map.contains("window"));
    expect_rows_of_softmax(map, layer_of(json, map).at("columns"));
  }
}

// 48 x 48 tokens in 144 windows: those in the middle, of every head and layer.
TEST(AttentionMaps, OfLargeMapsAreOfTheWindowsInTheMiddle) {
  const base::Json json = maps_of_model("swin-tiny32", 96);
  ASSERT_EQ(json.at("inputs").size(), 1U);
  ASSERT_EQ(json.at("layers").size(), 8U);
  std::size_t bytes = 0;
  std::set<std::int64_t> windows, heads;
  for (const auto& map : json.at("maps")) {
    bytes += weights_of(map).size();
    if (map.at("layer") != 0) continue;
    windows.insert(map.at("window").get<std::int64_t>());
    heads.insert(map.at("head").get<std::int64_t>());
  }
  EXPECT_LE(bytes, static_cast<std::size_t>(kMapBytes));
  EXPECT_EQ(heads.size(), 2U);
  // A share of 12,288 bytes, 256 a matrix, two heads.
  EXPECT_EQ(windows.size(), 24U);
  for (const std::int64_t middle : {65, 66, 77, 78}) {
    EXPECT_TRUE(windows.contains(middle)) << middle;
  }
}

}  // namespace polyattn::train::attention_maps_test
