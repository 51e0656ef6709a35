#include "bench/data_bench.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <system_error>

#include "base/program.h"
#include "bench/made_jpegs.h"
#include "train/adamw.h"
#include "train/examples.h"
#include "train/network.h"
#include "train/prefetch.h"
#include "train/step.h"

namespace polyattn::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kEndless = 1LL << 40;

class TemporaryImages {
 public:
  TemporaryImages() {
    std::string name =
        (fs::temp_directory_path() / "polyattn-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(),
                              "cannot write " + name);
    }
    path_ = name;
  }
  ~TemporaryImages() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryImages(const TemporaryImages&) = delete;
  TemporaryImages& operator=(const TemporaryImages&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct Augmentation {
  const char* name;
  void (*set)(run::AugmentConfig&);
};

constexpr Augmentation kAugmentations[] = {
    {"scaled, middle cut out", [](run::AugmentConfig& a) { a = {}; }},
    {"random resized crop, flip", [](run::AugmentConfig&) {}},
    {"rand-m9-mstd0.5-inc1, mixup, cutmix, erase",
     [](run::AugmentConfig& a) {
       a.auto_augment = "rand-inc";
       a.magnitude_std = 0.5;
       a.mixup = 0.8;
       a.cutmix = 1;
       a.erase = 0.25;
       a.erase_value = "noise";
     }},
};

run::Config config_of(const Options& options, const fs::path& folder) {
  run::Config config = run::default_config("imagenet");
  config.task.path = folder.string();
  config.model.activation = options.activations.front();
  config.train.seed = static_cast<std::int64_t>(options.seed);
  config.train.threads = options.threads.empty() ? base::hardware_threads()
                                                 : options.threads.front();
  config.train.workers = options.workers;
  config.train.batch = options.quick ? 8 : 32;
  config.train.steps = kEndless;
  return config;
}

double elapsed(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// Batches, one after the other, for about so many seconds.
double loading_rate(train::Examples& examples, double seconds) {
  examples.train_batch(0);
  double images = 0;
  double spent = 0;
  for (std::int64_t i = 1; spent < seconds; ++i) {
    spent += elapsed(
        [&] { images += static_cast<double>(examples.train_batch(i).items); });
  }
  return images / spent;
}

// Steps on batches from `make`; the first ones, in which nothing is ready yet
// and memory is touched, do not count.
TrainingRate training_rate(
    const run::Config& config, const train::TaskData& data, std::int64_t steps,
    const std::function<train::Batch(std::int64_t)>& make) {
  constexpr std::int64_t kFirst = 2;
  const auto network =
      train::make_network(config, train::shape_of(data, config.task));
  network->module().train();
  train::AdamW optimizer(network->module(), config.train);
  train::Stepper stepper(config, *network, optimizer, kEndless);
  train::Prefetcher batches(make, 0, kEndless);
  for (std::int64_t i = 0; i < kFirst; ++i) stepper.make(batches, i, false);
  const double waited = batches.waited();
  const double seconds = elapsed([&] {
    for (std::int64_t i = 0; i < steps; ++i) {
      stepper.make(batches, kFirst + i, false);
    }
  });
  return {.images_per_second =
              static_cast<double>(steps * config.train.batch) / seconds,
          .wait_share = (batches.waited() - waited) / seconds};
}

std::vector<int> worker_counts(std::int64_t workers) {
  if (workers == 1) return {1};
  return {1, static_cast<int>(workers)};
}

}  // namespace

DataFigures bench_data(const Options& options) {
  const TemporaryImages images;
  const JpegSpec spec{.count = options.quick ? 16 : 128, .seed = options.seed};
  DataFigures figures{.files = spec.count,
                      .file_bytes = write_made_jpegs(images.path(), spec)};
  run::Config config = config_of(options, images.path());
  if (config.train.workers == 0) config.train.workers = config.train.threads;
  figures.threads = static_cast<int>(config.train.threads);
  figures.workers = static_cast<int>(config.train.workers);
  at::set_num_threads(figures.threads);
  const auto data = train::load_task_data(config.task);
  const double seconds = options.min_time.value_or(options.quick ? 0.2 : 3);
  const std::int64_t steps = options.repeats.value_or(options.quick ? 2 : 10);
  for (const Augmentation& augmentation : kAugmentations) {
    run::Config own = config;
    augmentation.set(own.augment);
    for (const int workers : worker_counts(config.train.workers)) {
      own.train.workers = workers;
      const auto examples = train::make_examples(data, own);
      figures.loading.push_back(
          {augmentation.name, workers, loading_rate(*examples, seconds)});
    }
    own.train.workers = config.train.workers;
    const auto examples = train::make_examples(data, own);
    if (figures.training.empty()) {
      const train::Batch one = examples->train_batch(0);
      figures.model_images_per_second =
          training_rate(own, *data, steps, [&](std::int64_t) {
            return one;
          }).images_per_second;
    }
    figures.training.push_back(training_rate(
        own, *data, steps,
        [&](std::int64_t index) { return examples->train_batch(index); }));
    figures.training.back().augmentation = augmentation.name;
  }
  return figures;
}

}  // namespace polyattn::bench
