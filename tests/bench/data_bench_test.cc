#include "bench/data_bench.h"

#include <gtest/gtest.h>

namespace polyattn::bench::data_bench_test {
namespace {

const DataFigures kFigures{.files = 16,
                           .file_bytes = 110400,
                           .threads = 2,
                           .workers = 4,
                           .loading = {{"flip", 4, 500}},
                           .model_images_per_second = 40,
                           .training = {{"flip", 39, 0.0125}}};

TEST(DataBench, TextHasRatesAndWaiting) {
  const std::string text = data_text(kFigures);
  for (const char* part :
       {"16 JPEGs of 500 x 375, 110 KB each", "threads: 2, workers: 4", "500.0",
        "125.0", "40.0", "39.0", "1.2 %"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(DataBench, JsonHasTheSame) {
  const auto json = data_json(kFigures);
  EXPECT_EQ(json.at("loading").at(0).at("images_per_second"), 500.0);
  EXPECT_EQ(json.at("loading").at(0).at("workers"), 4);
  EXPECT_EQ(json.at("model_images_per_second"), 40.0);
  EXPECT_EQ(json.at("training").at(0).at("wait_share"), 0.0125);
}

}  // namespace
}  // namespace polyattn::bench::data_bench_test
