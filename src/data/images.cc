// load_images() of load.h: which reader takes a folder, and what its classes
// are called.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "data/cache.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/imagenet.h"
#include "data/load.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

enum class Format { kIdx, kCifarBinary, kCifarPng, kImageFolder };

using TenNames = std::array<const char*, 10>;

constexpr TenNames kDigits{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
constexpr TenNames kClothes{"T-shirt/top", "Trouser",   "Pullover", "Dress",
                            "Coat",        "Sandal",    "Shirt",    "Sneaker",
                            "Bag",         "Ankle boot"};
constexpr TenNames kCifarNames{"airplane", "automobile", "bird", "cat",
                               "deer",     "dog",        "frog", "horse",
                               "ship",     "truck"};

Format format_of(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw DataError(
        fmt::format("{}: there is no such folder", folder.string()));
  }
  if (is_idx_folder(folder)) return Format::kIdx;
  if (!cifar_binary_folder(folder).empty()) return Format::kCifarBinary;
  if (is_cifar_png_folder(folder)) return Format::kCifarPng;
  if (is_image_folder(folder)) return Format::kImageFolder;
  throw DataError(fmt::format(
      "{}: there are no images in it that polyattn can read: neither "
      "train-images-idx3-ubyte (or .gz), nor data_batch_1.bin, nor "
      "data_batch_1.png, nor a folder train",
      folder.string()));
}

ImageSplits read(const ImageSource& source, const fs::path& folder,
                 Format format) {
  switch (format) {
    case Format::kIdx:
      return load_idx_folder(folder);
    case Format::kCifarBinary:
      return load_cifar_binary(cifar_binary_folder(folder));
    case Format::kCifarPng:
      return load_cifar_png(folder);
    case Format::kImageFolder:
      break;
  }
  return load_image_folder(folder, source.image_size);
}

bool is_cifar(Format format) {
  return format == Format::kCifarBinary || format == Format::kCifarPng;
}

// A set that has a name is of one format: another is a mistake in the path.
void check_format(const ImageSource& source, const fs::path& folder,
                  Format format) {
  if (source.name == "images") return;
  const bool right =
      source.name == "cifar10" ? is_cifar(format) : format == Format::kIdx;
  if (right) return;
  throw DataError(fmt::format(
      "{}: this is not {}, but images of another format; call the data set "
      "'images' to read them",
      folder.string(), source.name));
}

std::vector<std::string> names_of(const TenNames& names) {
  return {names.begin(), names.end()};
}

// As many numbers as there are labels.
std::vector<std::string> numbers_for(const ImageSplits& splits) {
  std::int32_t most = 0;
  for (const ImageSet* set : {&splits.train, &splits.test}) {
    for (const std::int32_t label : set->labels) most = std::max(most, label);
  }
  std::vector<std::string> names;
  for (std::int32_t i = 0; i <= most; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<std::string> class_names(const ImageSource& source, Format format,
                                     const ImageSplits& splits) {
  if (is_cifar(format)) return names_of(kCifarNames);
  if (source.name == "mnist") return names_of(kDigits);
  if (source.name == "fashion-mnist") return names_of(kClothes);
  return numbers_for(splits);
}

void check_labels(const ImageSplits& splits, const fs::path& folder) {
  const auto classes = static_cast<std::int32_t>(splits.class_names.size());
  for (const ImageSet* set : {&splits.train, &splits.test}) {
    const auto& labels = set->labels;
    const auto wrong =
        std::find_if(labels.begin(), labels.end(),
                     [&](std::int32_t label) { return label >= classes; });
    if (wrong == labels.end()) continue;
    throw DataError(fmt::format(
        "{}: label {} of the {} images is {}, expected is 0 to {}",
        folder.string(), wrong - labels.begin(),
        set == &splits.train ? "training" : "test", *wrong, classes - 1));
  }
}

void check_path(const ImageSource& source) {
  if (!source.path.empty()) return;
  throw DataError(
      fmt::format("the data set '{}' needs a path to its folder", source.name));
}

}  // namespace

ImageFileSplits list_images(const ImageSource& source) {
  check_path(source);
  if (source.name == "imagenet") return list_imagenet(source.path);
  if (source.name == "tiny-imagenet") return list_tiny_imagenet(source.path);
  if (source.name != "images") {
    throw DataError(fmt::format(
        "'{}' is no data set of image files; expected is one of imagenet, "
        "tiny-imagenet, images",
        source.name));
  }
  if (is_image_folder(source.path)) return list_image_folder(source.path);
  throw DataError(
      fmt::format("{}: there is no folder train in it", source.path.string()));
}

ImageSplits load_images(const ImageSource& source) {
  constexpr std::array<std::string_view, 4> kNames{"fashion-mnist", "mnist",
                                                   "cifar10", "images"};
  if (std::find(kNames.begin(), kNames.end(), source.name) == kNames.end()) {
    throw DataError(
        fmt::format("there are no images '{}'; expected is one of "
                    "{}",
                    source.name, fmt::join(kNames, ", ")));
  }
  if (source.name == "images") check_path(source);
  const fs::path folder =
      source.path.empty() ? require_set(source.name) : source.path;
  const Format format = format_of(folder);
  check_format(source, folder, format);
  ImageSplits splits = read(source, folder, format);
  if (splits.class_names.empty()) {
    splits.class_names = class_names(source, format, splits);
  }
  check_labels(splits, folder);
  return splits;
}

}  // namespace polyattn::data
