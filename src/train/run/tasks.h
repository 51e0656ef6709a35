// The tasks that a config can name, and what sets them apart.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "train/run/config.h"

namespace polyattn::run {

// Kinds, as bits of a set.
inline constexpr unsigned kImages = 1, kTexts = 2, kListOps = 4, kImdb = 8,
                          kRecall = 16, kCopy = 32, kPhysics = 64;
inline constexpr unsigned kSequences = kListOps | kImdb;
inline constexpr unsigned kProbes = kRecall | kCopy;
// What language models learn.
inline constexpr unsigned kLanguage = kTexts | kProbes;
// What learns from examples, and what from a differential equation too.
inline constexpr unsigned kExamples = kImages | kLanguage | kSequences;
inline constexpr unsigned kAllTasks = kExamples | kPhysics;

struct TaskEntry {
  std::string_view name;
  unsigned kind = 0;
  // Side of its images, if that is known before they are read.
  std::int64_t image_side = 0;
};

inline constexpr std::array<TaskEntry, 19> kTasks = {{
    {"fashion-mnist", kImages, 28},
    {"mnist", kImages, 28},
    {"cifar10", kImages, 32},
    {"images", kImages},
    {"imagenet", kImages},
    {"tiny-imagenet", kImages},
    {"sotu", kTexts},
    {"brown", kTexts},
    {"text", kTexts},
    {"listops", kListOps},
    {"imdb", kImdb},
    {"recall", kRecall},
    {"copy", kCopy},
    {"convection", kPhysics},
    {"reaction", kPhysics},
    {"wave", kPhysics},
    {"heat", kPhysics},
    {"poisson", kPhysics},
    {"problem", kPhysics},
}};

// nullptr if there is none. In defaults.cc.
const TaskEntry* find_task(std::string_view name);

// Tokens of an example of a language model's training.
std::int64_t example_length(const TaskConfig& task);

}  // namespace polyattn::run
