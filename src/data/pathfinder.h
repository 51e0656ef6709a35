// Pathfinder, a task of Long Range Arena: two of many dashed lines are long and
// two of their ends are marked; are these the ends of one line? The image is
// read pixel by pixel, row after row.
#pragma once

#include <cstdint>
#include <vector>

#include "data/load.h"
#include "data/pathfinder_scene.h"
#include "data/sets.h"

namespace polyattn::data {

inline constexpr std::int64_t kPathfinderLength =
    kPathfinderSide * kPathfinderSide;

// Grey values, row by row: black is 0, a marker 255, paddles are darker than
// that by their width.
std::vector<std::uint8_t> pathfinder_image(const PathfinderScene& scene);

// Changes with every change that draws other images for the same numbers: what
// was kept under another version is not read.
inline constexpr int kPathfinderVersion = 1;

// An image is a function of the seed, its part and its place alone; every other
// one is connected. Takes all cores: some 2000 images a second on each. Throws
// DataError for numbers out of range.
SequenceSplits generate_pathfinder(const PathfinderSource& source);

// An empty set of Pathfinder: vocabulary and names.
SequenceSplits empty_pathfinder();

// A set of these images: their classes, and where each begins.
SequenceSet pathfinder_set(std::vector<std::uint8_t> pixels);

}  // namespace polyattn::data
