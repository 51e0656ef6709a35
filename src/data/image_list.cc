#include "data/image_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "data/file.h"

namespace polyattn::data {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

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

ImageFileSet files_below(const fs::path& folder) {
  ImageFileSet files;
  files.folder = (folder / "").string();
  return files;
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

std::int32_t label_of(const std::vector<std::string>& classes,
                      const std::string& name) {
  const auto found = std::lower_bound(classes.begin(), classes.end(), name);
  if (found == classes.end() || *found != name) return -1;
  return static_cast<std::int32_t>(found - classes.begin());
}

ImageFileSet list_classes(const fs::path& split,
                          const std::vector<std::string>& classes) {
  ImageFileSet files = files_below(split);
  for (const std::string& name : class_folders(split)) {
    const std::int32_t label = label_of(classes, name);
    if (label < 0) {
      throw DataError(fmt::format(
          "{}: there is no class of this name among the training images",
          (split / name).string()));
    }
    for (const fs::path& path : images_in(files.folder + name)) {
      files.add(path.string().substr(files.folder.size()), label);
    }
  }
  if (files.labels.empty()) {
    throw DataError(fmt::format(
        "{}: there are no images (.png, .jpg, .jpeg) in folders of classes",
        split.string()));
  }
  return files;
}

ImageFileSet list_training_classes(const fs::path& split,
                                   std::vector<std::string>& classes) {
  classes = class_folders(split);
  if (classes.empty()) {
    throw DataError(fmt::format("{}: there are no folders of classes in it",
                                split.string()));
  }
  ImageFileSet files = list_classes(split, classes);
  std::vector<bool> seen(classes.size());
  for (const std::int32_t label : files.labels) {
    seen[static_cast<std::size_t>(label)] = true;
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end()) {
    const auto label = static_cast<std::size_t>(missing - seen.begin());
    throw DataError(fmt::format("{}: this class has no images",
                                (split / classes[label]).string()));
  }
  return files;
}

}  // namespace polyattn::data
