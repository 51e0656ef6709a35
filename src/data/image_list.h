// The files of a folder of classes, in an order that depends on their names
// alone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/sets.h"

namespace polyattn::data {

bool is_folder(const std::filesystem::path& path);

// .png, .jpg, .jpeg in letters of any size.
bool is_image_name(const std::filesystem::path& path);

// A list of files in this folder that has none yet.
ImageFileSet files_below(const std::filesystem::path& folder);

// The folders in it, but for hidden ones.
std::vector<std::string> class_folders(const std::filesystem::path& split);

// The images in these folders of classes, at any depth. Throws DataError if
// there is a folder that is no class, and if there are no images.
ImageFileSet list_classes(const std::filesystem::path& split,
                          const std::vector<std::string>& classes);

// The same of the training images, in which every folder is a class and must
// have images; `classes` becomes their names, sorted by their bytes.
ImageFileSet list_training_classes(const std::filesystem::path& split,
                                   std::vector<std::string>& classes);

// The label of a class; -1 if there is none of that name.
std::int32_t label_of(const std::vector<std::string>& classes,
                      const std::string& name);

}  // namespace polyattn::data
