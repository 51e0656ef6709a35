#include "data/image_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include "data/file.h"
#include "data/image.h"
#include "data/jpeg.h"
#include "data/png.h"
#include "data/workers.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kTestNames{"test", "val", "validation"};
constexpr std::uint64_t kMaxImageBytes = std::uint64_t{1} << 29;

struct LabelledFile {
  fs::path path;
  std::int32_t label;
};

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_image_name(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char letter) {
                   return static_cast<char>(std::tolower(letter));
                 });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

// Hidden folders are what tools leave behind, not classes.
std::vector<std::string> class_folders(const fs::path& split) {
  std::vector<std::string> names;
  for (std::string& name : names_in(split)) {
    if (!name.starts_with('.') && is_folder(split / name)) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

std::vector<fs::path> images_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  try {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (is_image_name(entry.path()) && entry.is_regular_file()) {
        paths.push_back(entry.path());
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(fmt::format("cannot read {}: {}", folder.string(),
                                error.code().message()));
  }
  // The order of the system is not the same everywhere.
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<LabelledFile> list_files(const fs::path& split,
                                     const std::vector<std::string>& classes) {
  std::vector<LabelledFile> files;
  for (const std::string& name : class_folders(split)) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), name);
    if (found == classes.end() || *found != name) {
      throw DataError(fmt::format(
          "{}: there is no class of this name among the training images",
          (split / name).string()));
    }
    const auto label = static_cast<std::int32_t>(found - classes.begin());
    for (fs::path& path : images_in(split / name)) {
      files.push_back({std::move(path), label});
    }
  }
  if (files.empty()) {
    throw DataError(fmt::format(
        "{}: there are no images (.png, .jpg, .jpeg) in folders of classes",
        split.string()));
  }
  return files;
}

void check_every_class(const fs::path& split,
                       const std::vector<std::string>& classes,
                       const std::vector<LabelledFile>& files) {
  std::vector<bool> seen(classes.size());
  for (const LabelledFile& file : files) {
    seen[static_cast<std::size_t>(file.label)] = true;
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing == seen.end()) return;
  const auto label = static_cast<std::size_t>(missing - seen.begin());
  throw DataError(fmt::format("{}: this class has no images",
                              (split / classes[label]).string()));
}

void check_memory(const fs::path& folder, std::size_t images,
                  std::size_t size) {
  const double bytes = 3.0 * static_cast<double>(images) *
                       static_cast<double>(size) * static_cast<double>(size);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (memory > 0 && bytes > memory) {
    throw DataError(fmt::format(
        "{}: {} images of {} x {} take {:.1f} GB, but the machine has {:.1f} "
        "GB of memory; choose a smaller size",
        folder.string(), images, size, size, bytes / 1e9, memory / 1e9));
  }
}

// By its content: there are PNGs that are named .jpg.
RgbImage decode(const fs::path& path, std::size_t size) {
  const std::vector<std::byte> bytes = read_bytes(path, kMaxImageBytes);
  if (is_png(bytes)) return decode_png(bytes, path.string());
  if (is_jpeg(bytes)) return decode_jpeg(bytes, size, path.string());
  throw DataError(
      fmt::format("{}: this is neither a PNG nor a JPEG; remove or replace it",
                  path.string()));
}

ImageSet load_files(const std::vector<LabelledFile>& files, std::size_t size) {
  const auto side = static_cast<std::int64_t>(size);
  ImageSet set{
      .channels = 3, .height = side, .width = side, .pixels = {}, .labels = {}};
  const std::size_t stride = 3 * size * size;
  set.pixels.resize(files.size() * stride);
  run_parallel(files.size(), [&](std::size_t i) {
    scale_and_crop(decode(files[i].path, size), size, &set.pixels[i * stride]);
  });
  for (const LabelledFile& file : files) set.labels.push_back(file.label);
  return set;
}

fs::path test_folder(const fs::path& folder) {
  for (const char* name : kTestNames) {
    if (is_folder(folder / name)) return folder / name;
  }
  throw DataError(fmt::format("{}: beside train there is no folder {}",
                              folder.string(), fmt::join(kTestNames, " or ")));
}

}  // namespace

bool is_image_folder(const fs::path& folder) {
  return is_folder(folder / "train");
}

ImageSplits load_image_folder(const fs::path& folder, std::int64_t image_size) {
  constexpr std::int64_t kMaxSize = 4096;
  if (image_size < 1 || image_size > kMaxSize) {
    throw DataError(fmt::format("the size of images is {}, expected is 1 to {}",
                                image_size, kMaxSize));
  }
  const auto size = static_cast<std::size_t>(image_size);
  const fs::path train = folder / "train";
  const fs::path test = test_folder(folder);
  const std::vector<std::string> classes = class_folders(train);
  if (classes.empty()) {
    throw DataError(fmt::format("{}: there are no folders of classes in it",
                                train.string()));
  }
  const std::vector<LabelledFile> train_files = list_files(train, classes);
  check_every_class(train, classes, train_files);
  const std::vector<LabelledFile> test_files = list_files(test, classes);
  check_memory(folder, train_files.size() + test_files.size(), size);
  return {.train = load_files(train_files, size),
          .test = load_files(test_files, size),
          .class_names = classes};
}

}  // namespace polyattn::data
