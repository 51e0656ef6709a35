#include "data/image_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "data/decode.h"
#include "data/image.h"
#include "data/image_list.h"
#include "data/jpeg.h"
#include "data/workers.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kTestNames{"test", "val", "validation"};

void check_memory(const fs::path& folder, std::size_t images,
                  std::size_t size) {
  const double bytes = 3.0 * static_cast<double>(images) *
                       static_cast<double>(size) * static_cast<double>(size);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (memory > 0 && bytes > memory) {
    throw DataError(fmt::format(
        "{}: {} images of {} x {} take {:.1f} GB, but the machine has {:.1f} "
        "GB of memory; choose a smaller size, or task.stream = true",
        folder.string(), images, size, size, bytes / 1e9, memory / 1e9));
  }
}

RgbImage decode_file(const std::string& path, std::size_t size) {
  const std::vector<std::byte> bytes = read_image_file(path);
  return is_jpeg(bytes) ? decode_jpeg(bytes, size, path)
                        : decode_image(bytes, 1, path);
}

ImageSet load_files(const ImageFileSet& files, std::size_t size) {
  const auto side = static_cast<std::int64_t>(size);
  ImageSet set{.channels = 3,
               .height = side,
               .width = side,
               .pixels = {},
               .labels = files.labels};
  const std::size_t stride = 3 * size * size;
  set.pixels.resize(files.count() * stride);
  run_parallel(files.count(), [&](std::size_t i) {
    scale_and_crop(decode_file(files.path(i), size), size,
                   &set.pixels[i * stride]);
  });
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

ImageFileSplits list_image_folder(const fs::path& folder) {
  const fs::path test = test_folder(folder);
  ImageFileSplits splits;
  splits.train = list_training_classes(folder / "train", splits.class_names);
  splits.test = list_classes(test, splits.class_names);
  return splits;
}

ImageSplits load_image_folder(const fs::path& folder, std::int64_t image_size) {
  constexpr std::int64_t kMaxSize = 4096;
  if (image_size < 1 || image_size > kMaxSize) {
    throw DataError(fmt::format("the size of images is {}, expected is 1 to {}",
                                image_size, kMaxSize));
  }
  const auto size = static_cast<std::size_t>(image_size);
  ImageFileSplits files = list_image_folder(folder);
  check_memory(folder, files.train.count() + files.test.count(), size);
  return {.train = load_files(files.train, size),
          .test = load_files(files.test, size),
          .class_names = std::move(files.class_names)};
}

}  // namespace polyattn::data
