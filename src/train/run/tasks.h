// The tasks that a config can name, and what sets them apart.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "train/run/config.h"

namespace polyattn::run {

// Kinds, as bits of a set.
inline constexpr unsigned kImages = 1, kTexts = 2, kListOps = 4, kImdb = 8,
                          kRecall = 16, kCopy = 32, kPhysics = 64,
                          kPixels = 128, kPathfinder = 256, kAan = 512,
                          kSotuPairs = 1024;
// Examples of two sequences.
inline constexpr unsigned kPairs = kAan | kSotuPairs;
inline constexpr unsigned kSequences =
    kListOps | kImdb | kPixels | kPathfinder | kPairs;
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

inline constexpr std::array<TaskEntry, 23> kTasks = {{
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
    {"cifar10-pixels", kPixels},
    {"pathfinder", kPathfinder},
    {"aan", kAan},
    {"sotu-pairs", kSotuPairs},
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

struct LongestExample {
  std::string_view of;  // the key that says so, as task.context, or the task
  std::int64_t tokens = 0;
};

// Tokens of the longest sequence that a task of sequences, or a language model,
// can have; nothing if only its data can tell.
std::optional<LongestExample> longest_example(const TaskConfig& task);

}  // namespace polyattn::run
