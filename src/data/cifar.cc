#include "data/cifar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/file.h"
#include "data/labels.h"
#include "data/png.h"
#include "data/workers.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSide = 32;
constexpr std::size_t kChannels = 3;
constexpr std::size_t kPlane = kSide * kSide;
constexpr std::size_t kImage = kChannels * kPlane;
constexpr std::size_t kRecord = 1 + kImage;
constexpr std::size_t kMaxImages = 1000000;

// Without their ending, in the order of the labels.
constexpr std::array<const char*, 5> kTrainBatches{
    "data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
    "data_batch_5"};
constexpr const char* kTestBatch = "test_batch";

ImageSet empty_set() {
  return {.channels = kChannels,
          .height = kSide,
          .width = kSide,
          .pixels = {},
          .labels = {}};
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

ImageSet load_batches(const fs::path& folder,
                      std::span<const char* const> names) {
  ImageSet set = empty_set();
  for (const char* name : names) {
    const fs::path path = folder / fmt::format("{}.bin", name);
    const std::vector<std::byte> bytes = read_bytes(path, kMaxImages * kRecord);
    // The others will be about as long.
    if (set.labels.empty()) set.pixels.reserve(names.size() * bytes.size());
    append_cifar_batch(bytes, path.string(), set);
  }
  return set;
}

// One PNG, from pixels of three bytes to planes.
std::vector<std::uint8_t> load_png_batch(const fs::path& path) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
  const RgbImage image = decode_png(read_bytes(path, kMaxBytes), path.string());
  if (image.width != kPlane) {
    throw DataError(fmt::format(
        "{}: it is {} pixels wide, expected are {}: a row is an image",
        path.string(), image.width, kPlane));
  }
  std::vector<std::uint8_t> pixels(image.pixels.size());
  for (std::size_t row = 0; row < image.height; ++row) {
    const std::uint8_t* from = &image.pixels[row * kImage];
    std::uint8_t* to = &pixels[row * kImage];
    for (std::size_t i = 0; i < kPlane; ++i) {
      for (std::size_t c = 0; c < kChannels; ++c) {
        to[c * kPlane + i] = from[i * kChannels + c];
      }
    }
  }
  return pixels;
}

ImageSet load_png_split(const fs::path& folder,
                        std::span<const char* const> names,
                        const char* labels_name) {
  constexpr std::uint64_t kMaxJson = 16 * kMaxImages;
  std::vector<std::vector<std::uint8_t>> batches(names.size());
  run_parallel(names.size(), [&](std::size_t i) {
    batches[i] = load_png_batch(folder / fmt::format("{}.png", names[i]));
  });
  ImageSet set = empty_set();
  for (std::vector<std::uint8_t>& batch : batches) {
    set.pixels.insert(set.pixels.end(), batch.begin(), batch.end());
    batch = {};
  }
  const fs::path labels = folder / labels_name;
  set.labels = parse_labels(read_text(labels, kMaxJson),
                            {.max_count = kMaxImages, .classes = kCifarClasses},
                            labels.string());
  const std::size_t images = set.pixels.size() / kImage;
  if (images != set.labels.size()) {
    throw DataError(fmt::format(
        "{}: there are {} labels, but the pictures beside it have {} rows",
        labels.string(), set.labels.size(), images));
  }
  return set;
}

void write_batch(const ImageSet& set, std::size_t begin, std::size_t end,
                 const fs::path& path) {
  std::vector<std::byte> bytes;
  bytes.reserve((end - begin) * kRecord);
  for (std::size_t i = begin; i < end; ++i) {
    bytes.push_back(static_cast<std::byte>(set.labels[i]));
    const auto image =
        std::as_bytes(std::span(set.pixels)).subspan(i * kImage, kImage);
    bytes.insert(bytes.end(), image.begin(), image.end());
  }
  FileWriter file(path, FileWriter::Mode::kNew);
  file.write(bytes);
  file.close();
}

}  // namespace

void append_cifar_batch(std::span<const std::byte> bytes,
                        const std::string& source, ImageSet& set) {
  if (bytes.empty() || bytes.size() % kRecord != 0) {
    throw DataError(fmt::format(
        "{}: it has {} bytes, which is not a multiple of the {} that an image "
        "takes; get it again",
        source, bytes.size(), kRecord));
  }
  const std::size_t count = bytes.size() / kRecord;
  set.labels.reserve(set.labels.size() + count);
  const std::size_t old = set.pixels.size();
  set.pixels.resize(old + count * kImage);
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const std::byte> record =
        bytes.subspan(i * kRecord, kRecord);
    const auto label = std::to_integer<std::int32_t>(record[0]);
    if (label >= kCifarClasses) {
      throw DataError(
          fmt::format("{}: the label of image {} is {}, expected "
                      "is 0 to {}",
                      source, i, label, kCifarClasses - 1));
    }
    set.labels.push_back(label);
    const auto* image =
        reinterpret_cast<const std::uint8_t*>(record.subspan(1).data());
    std::copy_n(image, kImage, &set.pixels[old + i * kImage]);
  }
}

fs::path cifar_binary_folder(const fs::path& folder) {
  for (const fs::path& place : {folder, folder / "cifar-10-batches-bin"}) {
    if (is_file(place / "data_batch_1.bin")) return place;
  }
  return {};
}

bool is_cifar_png_folder(const fs::path& folder) {
  return is_file(folder / "data_batch_1.png");
}

ImageSplits load_cifar_binary(const fs::path& folder) {
  return {.train = load_batches(folder, kTrainBatches),
          .test = load_batches(folder, {&kTestBatch, 1}),
          .class_names = {}};
}

ImageSplits load_cifar_png(const fs::path& folder) {
  return {.train = load_png_split(folder, kTrainBatches, "train_lables.json"),
          .test = load_png_split(folder, {&kTestBatch, 1}, "test_lables.json"),
          .class_names = {}};
}

void cifar_png_to_binary(const fs::path& from, const fs::path& to) {
  const ImageSplits splits = load_cifar_png(from);
  const std::size_t batches = kTrainBatches.size();
  const std::size_t count = splits.train.count();
  for (std::size_t i = 0; i < batches; ++i) {
    write_batch(splits.train, count * i / batches, count * (i + 1) / batches,
                to / fmt::format("{}.bin", kTrainBatches[i]));
  }
  write_batch(splits.test, 0, splits.test.count(),
              to / fmt::format("{}.bin", kTestBatch));
}

}  // namespace polyattn::data
