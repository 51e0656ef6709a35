// ImageNet and Tiny-ImageNet as people have them on disk.
#pragma once

#include <filesystem>

#include "data/sets.h"

namespace polyattn::data {

// train/WNID/*.JPEG, and val/ either as well in folders of classes or flat.
// `folder` holds both, or ILSVRC/Data/CLS-LOC with both, as Kaggle's archive
// does. What is in a flat val/ says the first of these that lies in `folder`,
// or beside train/:
//
//   LOC_val_solution.csv                         Kaggle's
//   imagenet_2012_validation_synset_labels.txt   classes in order of the images
//   ILSVRC2012_validation_ground_truth.txt       numbers of these, in that
//   order
//
// The last is of the development kit (or in its data/). The order of its
// classes is in its meta.mat beside it, or in a synsets.txt, which comes first;
// it is not that of their names, so a sorted synsets.txt is refused. Classes
// are in the order of their names, as for everyone who reads folders. Throws
// DataError.
ImageFileSplits list_imagenet(const std::filesystem::path& folder);

// train/WNID/images/*.JPEG, and val/images/*.JPEG with val_annotations.txt, or
// val/ in folders of classes. Those of wnids.txt, if it is there, must be those
// of train/.
ImageFileSplits list_tiny_imagenet(const std::filesystem::path& folder);

}  // namespace polyattn::data
