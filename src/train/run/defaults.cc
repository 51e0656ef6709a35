// The defaults of each task: a start that trains within minutes on a few cores.
#include <fmt/format.h>

#include <algorithm>

#include "base/message.h"
#include "train/run/config.h"
#include "train/run/models.h"
#include "train/run/suggest.h"
#include "train/run/tasks.h"

namespace polyattn::run {
namespace {

void small_images(Config& config) {
  config.model.dim = 64;
  config.model.depth = 2;
  config.model.heads = 2;
  config.model.mlp = 128;
  config.model.patch = 4;
  config.model.pooling = "mean";
  config.model.initialisation = "xavier";
  config.model.layer_scale = 0.1;
  config.train.batch = 64;
  config.train.lr = 2e-3;
  config.train.epochs = 3;
  config.train.weight_decay = 0.05;
  config.train.warmup = 0.1;
  config.train.beta2 = 0.97;
}

void colour_images(Config& config) {
  config.model.dim = 128;
  config.model.depth = 4;
  config.model.heads = 2;
  config.model.mlp = 256;
  config.model.patch = 4;
  config.model.pooling = "class";
  config.model.initialisation = "xavier";
  config.train.batch = 64;
  config.train.lr = 1e-3;
  config.train.epochs = 5;
  config.augment.flip = true;
  config.augment.crop = 4;
}

// Sizes of DeiT-Tiny.
void streamed_images(Config& config) {
  config.task.stream = true;
  config.model.dim = 192;
  config.model.depth = 12;
  config.model.heads = 3;
  config.model.mlp = 768;
  config.model.initialisation = "vit";
  config.train.lr = 1e-3;
  config.train.weight_decay = 0.05;
  config.train.warmup = 0.05;
  config.train.label_smoothing = 0.1;
  config.augment.flip = true;
}

void imagenet(Config& config) {
  streamed_images(config);
  config.task.image_size = 224;
  config.task.resize = 256;
  config.model.patch = 16;
  config.train.batch = 256;
  config.train.epochs = 100;
  config.augment.crop_scale = 0.08;
}

void tiny_imagenet(Config& config) {
  streamed_images(config);
  config.task.image_size = 64;
  config.model.depth = 9;
  config.model.patch = 8;
  config.train.batch = 128;
  config.train.epochs = 30;
  config.augment.crop_scale = 0.25;
}

void texts(Config& config) {
  config.task.context = 256;
  config.model.dim = 128;
  config.model.depth = 4;
  config.model.heads = 4;
  config.model.mlp = 512;
  config.model.positions = "rotary";
  config.model.initialisation = "xavier";
  config.train.batch = 32;
  config.train.steps = 1200;
  config.train.lr = 2e-3;
  config.train.weight_decay = 0.1;
  config.train.beta2 = 0.95;
  config.record.evaluate = 300;
}

void sequences(Config& config) {
  config.model.dim = 64;
  config.model.depth = 2;
  config.model.heads = 2;
  config.model.mlp = 128;
  config.model.pooling = "mean";
  config.model.positions = "learned";
  config.train.batch = 32;
  config.train.lr = 5e-4;
  config.train.weight_decay = 0;
}

void list_ops(Config& config) {
  sequences(config);
  config.task.min_length = 16;
  config.task.max_length = 256;
  config.train.steps = 3000;
  config.record.evaluate = 500;
}

void imdb(Config& config) {
  sequences(config);
  config.task.context = 1024;
  config.train.steps = 1500;
  config.record.evaluate = 250;
}

void pixels(Config& config) {
  sequences(config);
  config.train.steps = 1500;
  config.record.evaluate = 500;
}

void pathfinder(Config& config) {
  sequences(config);
  config.task.train_count = 40000;
  config.train.steps = 3000;
  config.record.evaluate = 500;
}

void pairs(Config& config) {
  sequences(config);
  config.task.context = 1024;
  config.task.train_count = 20000;
  config.train.steps = 1500;
  config.record.evaluate = 250;
}

void probes(Config& config) {
  config.task.length = 64;
  config.task.train_count = 100000;
  config.task.test_count = 1000;
  config.model.dim = 64;
  config.model.depth = 2;
  config.model.heads = 2;
  config.model.mlp = 128;
  config.model.positions = "rotary";
  config.model.initialisation = "xavier";
  config.train.batch = 64;
  config.train.steps = 3000;
  config.train.lr = 2e-3;
  config.train.beta2 = 0.95;
  config.record.evaluate = 500;
}

// The published PINNsformer; apply_model() changes what its baseline has.
void physics(Config& config) {
  config.model.dim = 32;
  config.model.depth = 1;
  config.model.heads = 2;
  config.model.mlp = 256;
  config.model.initialisation = "pinn";
  config.train.optimizer = "lbfgs";
  config.train.steps = 500;
  config.train.weight_decay = 0;
  config.record.norms = 50;
  config.record.evaluate = 50;
}

}  // namespace

const TaskEntry* find_task(std::string_view name) {
  const auto* const found =
      std::find_if(kTasks.begin(), kTasks.end(),
                   [&](const TaskEntry& task) { return task.name == name; });
  return found == kTasks.end() ? nullptr : found;
}

std::int64_t example_length(const TaskConfig& task) {
  const TaskEntry* const entry = find_task(task.name);
  const bool probe = entry != nullptr && (entry->kind & kProbes) != 0;
  return probe ? task.length : task.context;
}

std::optional<LongestExample> longest_example(const TaskConfig& task) {
  const TaskEntry* const entry = find_task(task.name);
  constexpr std::int64_t kImage = 32 * 32;
  switch (entry == nullptr ? 0 : entry->kind) {
    case kListOps:
      return LongestExample{"task.max_length", task.max_length};
    case kRecall:
    case kCopy:
      return LongestExample{"task.length", task.length};
    case kTexts:
    case kImdb:
    case kAan:
    case kSotuPairs:
      return LongestExample{"task.context", task.context};
    case kPathfinder:
      return LongestExample{entry->name, kImage};
    case kPixels:
      if (!task.path.empty()) return std::nullopt;
      return LongestExample{entry->name, kImage};
    default:
      return std::nullopt;
  }
}

const std::vector<std::string>& task_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    all.reserve(kTasks.size());
    for (const TaskEntry& task : kTasks) all.emplace_back(task.name);
    return all;
  }();
  return names;
}

Config default_config(std::string_view task, std::string_view model) {
  const TaskEntry* const entry = find_task(task);
  if (entry == nullptr) {
    throw ConfigError(fmt::format("[config] unknown task {}: {}",
                                  base::in_quotes(task), advice_on_task(task)));
  }
  Config config;
  config.task.name = entry->name;
  if (entry->kind == kTexts) {
    texts(config);
  } else if ((entry->kind & kProbes) != 0) {
    probes(config);
  } else if (entry->kind == kListOps) {
    list_ops(config);
  } else if (entry->kind == kImdb) {
    imdb(config);
  } else if (entry->kind == kPhysics) {
    physics(config);
  } else if (entry->kind == kPixels) {
    pixels(config);
  } else if (entry->kind == kPathfinder) {
    pathfinder(config);
  } else if ((entry->kind & kPairs) != 0) {
    pairs(config);
  } else if (entry->name == "imagenet") {
    imagenet(config);
  } else if (entry->name == "tiny-imagenet") {
    tiny_imagenet(config);
  } else if (entry->image_side == 28) {
    small_images(config);
  } else {
    colour_images(config);
  }
  const ModelEntry* const chosen =
      model.empty() ? default_model(entry->kind) : find_model(model);
  if (chosen == nullptr || (chosen->tasks & entry->kind) == 0) {
    throw ConfigError(fmt::format("[config] unknown model {} of {}: {}",
                                  base::in_quotes(model), task,
                                  advice_on_model(model, *entry)));
  }
  apply_model(*chosen, config.model);
  return config;
}

}  // namespace polyattn::run
