// Every image of a set decoded once, before a run that takes days meets the one
// that cannot be.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "data/sets.h"

namespace polyattn::data {

// What is wrong with each file that cannot be decoded, in the order of the
// list. On all cores; `progress` is called now and then, by one thread at a
// time, with how many are done.
std::vector<std::string> damaged_images(
    const ImageFileSet& files,
    const std::function<void(std::size_t)>& progress = [](std::size_t) {});

}  // namespace polyattn::data
