// What `polyattn bench data` prints.
#include <fmt/format.h>

#include "base/text_table.h"
#include "bench/data_bench.h"

namespace polyattn::bench {

std::string data_text(const DataFigures& figures) {
  base::TextTable loading({{"images a second, alone", base::Align::kLeft},
                           {"workers"},
                           {"all"},
                           {"a worker"}});
  for (const LoadingRate& row : figures.loading) {
    loading.add_row(
        {row.augmentation, std::to_string(row.workers),
         fmt::format("{:.1f}", row.images_per_second),
         fmt::format("{:.1f}", row.images_per_second / row.workers)});
  }
  base::TextTable training({{"ViT-Tiny in training", base::Align::kLeft},
                            {"images a second"},
                            {"waiting"}});
  training.add_row({"one batch again and again",
                    fmt::format("{:.1f}", figures.model_images_per_second),
                    ""});
  for (const TrainingRate& row : figures.training) {
    training.add_row({row.augmentation,
                      fmt::format("{:.1f}", row.images_per_second),
                      fmt::format("{:.1f} %", 100 * row.wait_share)});
  }
  return fmt::format(
      "{} JPEGs of 500 x 375, {:.0f} KB each; to 224 x 224; threads: {}, "
      "workers: {}\n\n{}\n{}",
      figures.files, figures.file_bytes / 1e3, figures.threads, figures.workers,
      loading.to_string(), training.to_string());
}

nlohmann::ordered_json data_json(const DataFigures& figures) {
  nlohmann::ordered_json json = {
      {"files", figures.files},
      {"file_bytes", figures.file_bytes},
      {"threads", figures.threads},
      {"workers", figures.workers},
      {"loading", nlohmann::ordered_json::array()},
      {"model_images_per_second", figures.model_images_per_second},
      {"training", nlohmann::ordered_json::array()}};
  for (const LoadingRate& row : figures.loading) {
    json["loading"].push_back({{"augmentation", row.augmentation},
                               {"workers", row.workers},
                               {"images_per_second", row.images_per_second}});
  }
  for (const TrainingRate& row : figures.training) {
    json["training"].push_back({{"augmentation", row.augmentation},
                                {"images_per_second", row.images_per_second},
                                {"wait_share", row.wait_share}});
  }
  return json;
}

}  // namespace polyattn::bench
