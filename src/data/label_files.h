// The text files that say what is in the images of ImageNet and Tiny-ImageNet.
//
// Every function takes the text of a file, and throws DataError, which names
// the source and the line. Names are those of files and folders: none has a
// separator in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::data {

// The first word of each line, the name of a class: wnids.txt, synsets.txt. A
// name that occurs twice is an error, unless there is a class for each image.
enum class Names { kEachOnce, kOneAnImage };
std::vector<std::string> parse_names(std::string_view text, Names names,
                                     const std::string& source);

struct LabelledName {
  std::string image;  // with or without its ending, as the file has it
  std::string class_name;
};

// val_annotations.txt of Tiny-ImageNet: image, class and a box, between tabs.
std::vector<LabelledName> parse_val_annotations(std::string_view text,
                                                const std::string& source);

// LOC_val_solution.csv of Kaggle: a line of titles, then image and boxes, each
// of which begins with a class; the class of the first counts.
std::vector<LabelledName> parse_val_solution(std::string_view text,
                                             const std::string& source);

// ILSVRC2012_validation_ground_truth.txt: a number from 1 to classes on each
// line. Counted from 0 here.
std::vector<std::int32_t> parse_ground_truth(std::string_view text,
                                             std::size_t classes,
                                             const std::string& source);

// meta.mat of the development kit: of those of its `synsets` that have no
// children, the WNID, in the order of ILSVRC2012_ID, which counts them from 1.
std::vector<std::string> parse_kit_classes(std::span<const std::byte> bytes,
                                           const std::string& source);

}  // namespace polyattn::data
