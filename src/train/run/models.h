// The models that a config can name, and what sets them apart. Without torch:
// train/network.cc makes them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "train/run/config.h"

namespace polyattn::run {

enum class ModelFamily {
  kViT,
  kSwin,
  kXCiT,
  kGpt,
  kClassifier,
  kPinnsformer,
  kPinn
};

// What the name of a model decides, in the keys of the config that say it.
// Where sizes grow from stage to stage, those of the first, and the blocks of
// all.
struct ModelSizes {
  std::int64_t dim = 0, depth = 0, heads = 0, mlp = 0, patch = 0;
  double layer_scale = 0;
  std::int64_t least_side = 0;  // of an image
};

struct ModelEntry {
  std::string_view name;
  ModelFamily family = ModelFamily::kViT;
  unsigned tasks = 0;  // kinds, as in tasks.h
  // Has logits that learn from a teacher.
  bool distilled = false;
  // Of width 0: those of the config.
  ModelSizes sizes = {};
  // What swin_options() and xcit_options() call it, and "nystromformer" of its
  // models for Long Range Arena. Others need no more than their sizes.
  std::string_view options = {};

  bool is_named_size() const { return sizes.dim > 0; }
};

std::span<const ModelEntry> models();

// nullptr if there is none.
const ModelEntry* find_model(std::string_view name);

// What a kind of tasks trains if nothing is said.
const ModelEntry* default_model(unsigned kind);

// Whether a value of the section [model] can be chosen. The others are what the
// model has, and no other value is taken.
bool heeds(const ModelEntry& model, std::string_view key);

// What the published models of Long Range Arena call a task, and how many
// positions theirs has.
struct LraTask {
  std::string_view name;
  std::int64_t positions = 0;
};

// Of a kind of tasks of sequences.
LraTask lra_task(unsigned kind);

// Puts the name, and what it decides, into the config.
void apply_model(const ModelEntry& model, ModelConfig& config);

// "vit, vit-tiny28, ...": of a kind of tasks.
std::string model_names(unsigned tasks);

}  // namespace polyattn::run
