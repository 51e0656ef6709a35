#include "data/imagenet.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "data/file.h"
#include "data/image_list.h"
#include "data/label_files.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

using Classes = std::vector<std::string>;

constexpr std::uint64_t kMaxLabelBytes = std::uint64_t{1} << 26;
constexpr const char* kGroundTruth = "ILSVRC2012_validation_ground_truth.txt";

std::string read_labels(const fs::path& path) {
  return read_text(path, kMaxLabelBytes);
}

void check_has_training(const fs::path& folder, const char* set) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw DataError(
        fmt::format("{}: there is no such folder", folder.string()));
  }
  if (is_folder(folder / "train") && is_folder(folder / "val")) return;
  throw DataError(
      fmt::format("{}: this is not {}: there are no folders train and val",
                  folder.string(), set));
}

std::int32_t required_label(const Classes& classes, const std::string& name,
                            const fs::path& source) {
  const std::int32_t label = label_of(classes, name);
  if (label >= 0) return label;
  throw DataError(
      fmt::format("{}: there is no class {} among the training images",
                  source.string(), name));
}

// The images of a flat folder, in the order of their names.
Classes flat_images(const fs::path& folder) {
  Classes names = names_in(folder);
  std::erase_if(names, [](const std::string& name) {
    return name.starts_with('.') || !is_image_name(name);
  });
  if (names.empty()) {
    throw DataError(fmt::format("{}: there are no images (.png, .jpg, .jpeg)",
                                folder.string()));
  }
  return names;
}

// Labels by the names of the images, with their endings or without.
ImageFileSet with_labels(const fs::path& folder, const Classes& classes,
                         const std::vector<LabelledName>& labels,
                         const fs::path& source) {
  std::unordered_map<std::string, std::int32_t> label_by_image;
  for (const LabelledName& line : labels) {
    const std::int32_t label = required_label(classes, line.class_name, source);
    if (!label_by_image.emplace(line.image, label).second) {
      throw DataError(fmt::format("{}: {} is there a second time",
                                  source.string(), line.image));
    }
  }
  ImageFileSet files = files_below(folder);
  for (const std::string& name : flat_images(folder)) {
    auto found = label_by_image.find(name);
    if (found == label_by_image.end()) {
      found = label_by_image.find(fs::path(name).stem().string());
    }
    if (found == label_by_image.end()) {
      throw DataError(fmt::format("{}: its class is not in {}",
                                  (folder / name).string(), source.string()));
    }
    files.add(name, found->second);
  }
  if (files.count() != label_by_image.size()) {
    throw DataError(
        fmt::format("{}: there are {} images, but {} has the classes of {}",
                    folder.string(), files.count(), source.string(),
                    label_by_image.size()));
  }
  return files;
}

// 48981 of ILSVRC2012_val_00048981.JPEG; 0 if there is no number.
std::size_t number_of(const std::string& name) {
  const std::string stem = fs::path(name).stem().string();
  const std::size_t begin = stem.find_last_not_of("0123456789") + 1;
  std::size_t number = 0;
  std::from_chars(stem.data() + begin, stem.data() + stem.size(), number);
  return number;
}

// Labels by the place of the images, which their names say too.
ImageFileSet in_order(const fs::path& folder,
                      const std::vector<std::int32_t>& labels,
                      const fs::path& source) {
  const Classes names = flat_images(folder);
  if (names.size() != labels.size()) {
    throw DataError(fmt::format(
        "{}: there are {} images, but {} has the classes of {}",
        folder.string(), names.size(), source.string(), labels.size()));
  }
  ImageFileSet files = files_below(folder);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (number_of(names[i]) != i + 1) {
      throw DataError(fmt::format(
          "{}: its number must be {}, its place among the images of {}",
          (folder / names[i]).string(), i + 1, source.string()));
    }
    files.add(names[i], labels[i]);
  }
  return files;
}

std::vector<std::int32_t> labels_of(const Classes& names,
                                    const Classes& classes,
                                    const fs::path& source) {
  std::vector<std::int32_t> labels;
  for (const std::string& name : names) {
    labels.push_back(required_label(classes, name, source));
  }
  return labels;
}

Classes listed_synsets(const fs::path& source) {
  Classes synsets =
      parse_names(read_labels(source), Names::kEachOnce, source.string());
  if (synsets.size() > 1 && std::is_sorted(synsets.begin(), synsets.end())) {
    throw DataError(fmt::format(
        "{}: the classes are in the order of their names, which is not that "
        "of the development kit (its meta.mat)",
        source.string()));
  }
  return synsets;
}

// The label of each class of the development kit, in its order.
std::vector<std::int32_t> kit_labels(const fs::path& kit,
                                     const Classes& classes) {
  const fs::path list = kit / "synsets.txt", meta = kit / "meta.mat";
  if (fs::exists(list)) return labels_of(listed_synsets(list), classes, list);
  if (fs::exists(meta)) {
    return labels_of(
        parse_kit_classes(read_bytes(meta, kMaxLabelBytes), meta.string()),
        classes, meta);
  }
  throw DataError(fmt::format(
      "{}: {} needs meta.mat of the development kit beside it, or synsets.txt, "
      "the classes in the order of the kit, one a line",
      kit.string(), kGroundTruth));
}

std::optional<fs::path> find_file(const std::vector<fs::path>& folders,
                                  const char* name) {
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / name)) return folder / name;
  }
  return std::nullopt;
}

ImageFileSet list_flat(const fs::path& val, const Classes& classes,
                       const std::vector<fs::path>& folders) {
  if (const auto source = find_file(folders, "LOC_val_solution.csv")) {
    return with_labels(
        val, classes,
        parse_val_solution(read_labels(*source), source->string()), *source);
  }
  if (const auto source =
          find_file(folders, "imagenet_2012_validation_synset_labels.txt")) {
    const Classes names =
        parse_names(read_labels(*source), Names::kOneAnImage, source->string());
    return in_order(val, labels_of(names, classes, *source), *source);
  }
  if (const auto source = find_file(folders, kGroundTruth)) {
    const auto kit = kit_labels(source->parent_path(), classes);
    auto labels =
        parse_ground_truth(read_labels(*source), kit.size(), source->string());
    for (std::int32_t& label : labels) {
      label = kit[static_cast<std::size_t>(label)];
    }
    return in_order(val, labels, *source);
  }
  throw DataError(fmt::format(
      "{}: the images are not in folders of classes, and {} has neither "
      "LOC_val_solution.csv nor imagenet_2012_validation_synset_labels.txt nor "
      "{}",
      val.string(), folders.front().string(), kGroundTruth));
}

}  // namespace

ImageFileSplits list_imagenet(const fs::path& folder) {
  const fs::path kaggle = folder / "ILSVRC" / "Data" / "CLS-LOC";
  const fs::path base = is_folder(kaggle) ? kaggle : folder;
  check_has_training(base, "ImageNet");
  ImageFileSplits splits;
  splits.train = list_training_classes(base / "train", splits.class_names);
  const fs::path val = base / "val";
  splits.test =
      class_folders(val).empty()
          ? list_flat(val, splits.class_names,
                      {folder, base, folder / "ILSVRC2012_devkit_t12" / "data"})
          : list_classes(val, splits.class_names);
  return splits;
}

ImageFileSplits list_tiny_imagenet(const fs::path& folder) {
  check_has_training(folder, "Tiny-ImageNet");
  ImageFileSplits splits;
  splits.train = list_training_classes(folder / "train", splits.class_names);
  const fs::path names = folder / "wnids.txt";
  if (fs::exists(names)) {
    Classes listed =
        parse_names(read_labels(names), Names::kEachOnce, names.string());
    std::sort(listed.begin(), listed.end());
    if (listed != splits.class_names) {
      throw DataError(fmt::format(
          "{}: its {} classes are not the {} of train/; is the archive "
          "unpacked to its end?",
          names.string(), listed.size(), splits.class_names.size()));
    }
  }
  const fs::path val = folder / "val";
  const fs::path annotations = val / "val_annotations.txt";
  splits.test =
      fs::exists(annotations)
          ? with_labels(val / "images", splits.class_names,
                        parse_val_annotations(read_labels(annotations),
                                              annotations.string()),
                        annotations)
          : list_classes(val, splits.class_names);
  return splits;
}

}  // namespace polyattn::data
