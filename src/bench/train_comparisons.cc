#include "bench/train_comparisons.h"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "bench/attention_shares.h"
#include "bench/eager_attention.h"
#include "bench/rig.h"
#include "train/examples.h"
#include "train/network.h"
#include "train/random.h"
#include "train/run/config.h"
#include "train/start.h"

namespace polyattn::bench {
namespace {

constexpr const char* kActivations[] = {"softmax", "x^3/sqrt(N)"};

// The default model for CIFAR-10: 64 patches and a class token, heads of 64.
run::Config vit_config(const std::string& activation) {
  run::Config config = run::default_config("cifar10");
  config.model.activation = activation;
  config.train.batch = 64;
  config.train.steps = kForever;
  return config;
}

// The default model for a text, with a longer context.
run::Config gpt_config(const std::string& activation) {
  run::Config config = run::default_config("sotu");
  config.model.activation = activation;
  config.task.context = 512;
  config.train.batch = 8;
  config.train.steps = kForever;
  return config;
}

// Speed does not depend on what is in the data.
std::shared_ptr<const train::TaskData> noise_images(std::uint64_t seed) {
  train::Random random(seed, train::Stream::kOrder, 0);
  data::ImageSplits splits;
  for (int i = 0; i < 10; ++i) splits.class_names.push_back(std::to_string(i));
  splits.train.channels = 3;
  splits.train.height = splits.train.width = 32;
  splits.train.pixels.resize(std::size_t{1024} * 3 * 32 * 32);
  for (auto& level : splits.train.pixels) {
    level = static_cast<std::uint8_t>(random.next());
  }
  for (int i = 0; i < 1024; ++i) {
    splits.train.labels.push_back(static_cast<std::int32_t>(random.below(10)));
  }
  splits.test = splits.train;
  return std::make_shared<const train::TaskData>(std::move(splits));
}

std::shared_ptr<const train::TaskData> noise_text(std::uint64_t seed) {
  train::Random random(seed, train::Stream::kOrder, 0);
  std::string text;
  for (int i = 0; i < 100000; ++i) {
    text.push_back(static_cast<char>('a' + random.below(26)));
  }
  return std::make_shared<const train::TaskData>(
      data::TextSplits{.train = text, .test = text});
}

using MakeData = std::shared_ptr<const train::TaskData> (*)(std::uint64_t seed);

enum class Batches { kOne, kMade };

std::shared_ptr<Rig> make_rig(
    const run::Config& config,
    const std::shared_ptr<const train::TaskData>& data, Batches batches) {
  const std::shared_ptr<train::Examples> examples =
      train::make_examples(data, config);
  auto network =
      train::make_network(config, train::shape_of(*data, config.task));
  const train::Batch first = examples->train_batch(0);
  return std::make_shared<Rig>(
      config, std::move(network), [=](std::int64_t index) {
        return batches == Batches::kOne ? first : examples->train_batch(index);
      });
}

// Both start from the same weights and see the same batch: two losses that
// differ by more than a thousandth are of two models.
void check_losses(const std::string& name, double ours, double theirs) {
  if (std::abs(ours - theirs) > 1e-3 * std::abs(theirs)) {
    throw std::runtime_error(
        fmt::format("[bench] {}: our loss is {}, that of the baseline {}", name,
                    ours, theirs));
  }
}

Comparison step_comparison(const std::string& name, const run::Config& config,
                           MakeData make_data, double goal) {
  Comparison comparison;
  comparison.name =
      fmt::format("training step, {}, {}", name, config.model.activation);
  comparison.baseline_name = "the same model, eager";
  comparison.goal = goal;
  comparison.effort = 2;
  comparison.item_name = config.task.name == "sotu" ? "tokens" : "images";
  comparison.items = config.train.batch *
                     (config.task.name == "sotu" ? config.task.context : 1);
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    run::Config own = config;
    own.train.seed = static_cast<std::int64_t>(seed);
    const auto data = make_data(seed);
    auto ours = make_rig(own, data, Batches::kOne);
    auto theirs = make_rig(own, data, Batches::kOne);
    make_eager(theirs->module());
    check_losses(comparison.name, ours->step(), theirs->step());
    return {[ours] { ours->step(); }, [theirs] { theirs->step(); }};
  };
  return comparison;
}

// A part of attention that is off by default.
struct Part {
  const char* name;
  void (*set)(run::ModelConfig& model, std::int64_t window);
};

constexpr Part kParts[] = {
    {"output_norm", [](run::ModelConfig& m, auto) { m.output_norm = "rms"; }},
    {"output_gate", [](run::ModelConfig& m, auto) { m.output_gate = true; }},
    {"center_values",
     [](run::ModelConfig& m, auto) { m.center_values = true; }},
    {"short_conv", [](run::ModelConfig& m, auto w) { m.short_conv = w; }}};

// What a part costs: at most 3 %, or it should be fused. short_conv: of texts 4
// wide, of images 3.
Comparison part_comparison(const std::string& name, const Part& part,
                           const run::Config& config, MakeData make_data) {
  Comparison comparison;
  comparison.name = fmt::format("step with {}, {}, {}", part.name, name,
                                config.model.activation);
  comparison.baseline_name = "step without";
  comparison.goal = 0.97;
  comparison.effort = 2;
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    const auto data = make_data(seed);
    run::Config own = config;
    part.set(own.model, config.task.name == "sotu" ? 4 : 3);
    auto with = make_rig(own, data, Batches::kOne);
    auto without = make_rig(config, data, Batches::kOne);
    return {[with] { with->step(); }, [without] { without->step(); }};
  };
  return comparison;
}

// What making batches costs, beside the training: at most 2 %.
Comparison batches_comparison() {
  Comparison comparison;
  comparison.name = "step with new batches (flip, crop), ViT, softmax";
  comparison.baseline_name = "step with one batch again";
  comparison.goal = 0.98;
  comparison.effort = 2;
  comparison.prepare = [](std::uint64_t seed) -> Calls {
    const auto data = noise_images(seed);
    auto made = make_rig(vit_config("softmax"), data, Batches::kMade);
    auto one = make_rig(vit_config("softmax"), data, Batches::kOne);
    return {[made] { made->step(); }, [one] { one->step(); }};
  };
  return comparison;
}

// A step in which the norms are watched. One in fifty is by default, which may
// cost 3 % of the time: so it may take 2.5 times as long as another.
Comparison norms_comparison(const std::string& activation) {
  Comparison comparison;
  const auto every =
      static_cast<double>(run::default_config("cifar10").record.norms);
  comparison.name = fmt::format("step with norms watched (1 in {}), ViT, {}",
                                every, activation);
  comparison.baseline_name = "step without";
  comparison.goal = 1 / (1 + 0.03 * every);
  comparison.effort = 2;
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    auto rig =
        make_rig(vit_config(activation), noise_images(seed), Batches::kOne);
    return {[rig] { rig->step(true); }, [rig] { rig->step(false); }};
  };
  return comparison;
}

// What measuring the first batch takes: a second of a run at most.
Comparison start_comparison(const std::string& name, const run::Config& config,
                            MakeData make_data) {
  Comparison comparison;
  comparison.name = fmt::format("start of a run, matched, {}, {}", name,
                                config.model.activation);
  comparison.baseline_name = "start of a run, plain";
  comparison.effort = 2;
  comparison.prepare = [=](std::uint64_t seed) -> Calls {
    const auto data = make_data(seed);
    const std::shared_ptr<train::Examples> examples =
        train::make_examples(data, config);
    const auto start = [=](const char* kind) {
      run::Config own = config;
      own.model.start = kind;
      train::start_network(own, train::shape_of(*data, own.task), *examples);
    };
    return {[=] { start("matched"); }, [=] { start("plain"); }};
  };
  return comparison;
}

}  // namespace

std::vector<Comparison> train_comparisons(bool quick) {
  std::vector<Comparison> comparisons;
  for (const char* activation : kActivations) {
    comparisons.push_back(step_comparison("ViT, 64 images, N = 65, D = 64",
                                          vit_config(activation), noise_images,
                                          1.1));
  }
  for (const char* activation : kActivations) {
    comparisons.push_back(step_comparison(
        "Gpt, 8 texts, N = 512", gpt_config(activation), noise_text, 1.4));
  }
  comparisons.push_back(batches_comparison());
  if (quick) return comparisons;
  for (const char* activation : kActivations) {
    comparisons.push_back(norms_comparison(activation));
  }
  comparisons.push_back(
      start_comparison("ViT", vit_config("x^3/sqrt(N)"), noise_images));
  comparisons.push_back(
      start_comparison("Gpt", gpt_config("x^3/sqrt(N)"), noise_text));
  for (const char* activation : kActivations) {
    comparisons.push_back(channels_comparison(activation));
    comparisons.push_back(dropout_comparison(activation));
  }
  for (const Part& part : kParts) {
    comparisons.push_back(
        part_comparison("ViT", part, vit_config("x^3/sqrt(N)"), noise_images));
    comparisons.push_back(
        part_comparison("Gpt", part, gpt_config("x^3/sqrt(N)"), noise_text));
  }
  return comparisons;
}

}  // namespace polyattn::bench
