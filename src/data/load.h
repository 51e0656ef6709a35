// The data of a task, from the cache or from a path of the user's.
//
// Every function throws DataError. Without a path the set is the one that
// `polyattn data fetch` unpacked, or that a package of the system installed; if
// it is not there, the message says which command fetches it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/sets.h"

namespace polyattn::data {

struct ImageSource {
  // fashion-mnist, mnist, cifar10, or images (which needs a path); for
  // list_images() imagenet and tiny-imagenet too.
  std::string name;
  // Empty, or a folder in one of the common formats: the four idx files
  // (gzipped or not), CIFAR-10's binary batches, or a folder of images (train/
  // and test/ or val/, in each a folder a class with JPEG or PNG files).
  std::filesystem::path path = {};
  // Folders of images: they are scaled and cropped to this many pixels a side.
  std::int64_t image_size = 32;
};

ImageSplits load_images(const ImageSource& source);

// The same images as sequences of grey pixels, row after row, each a token.
SequenceSplits load_pixels(const ImageSource& source);

// imagenet, tiny-imagenet or images, each with a path: files that are decoded
// when they are needed (data/imagenet.h, data/image_folder.h).
ImageFileSplits list_images(const ImageSource& source);

struct TextSource {
  // sotu, brown, or text (which needs a path).
  std::string name;
  // Empty, or a file or a folder of .txt files.
  std::filesystem::path path = {};
  // Of a path: the share at the end that is held out.
  double test_share = 0.1;
};

// sotu: the addresses in the order of their years, the last tenth held out.
// brown: its samples, spread so that the last tenth, which is held out, has
// prose of each kind (data/brown.h).
TextSplits load_text(const TextSource& source);

struct ImdbSource {
  // Empty, or the folder of its authors (train/pos/*.txt, train/neg, test/pos,
  // test/neg), or a file as in the package (data/imdb.h).
  std::filesystem::path path = {};
  // Longer reviews are cut.
  std::int64_t max_length = 1024;
};

// Reviews as bytes moved up by one; classes negative, positive.
SequenceSplits load_imdb(const ImdbSource& source);

struct ListOpsSource {
  // Tokens without parentheses, both inclusive.
  std::int64_t min_length = 16;
  std::int64_t max_length = 256;
  std::int64_t train_count = 96000;
  std::int64_t test_count = 2000;
  std::uint64_t seed = 1;
  // Empty, or a folder with the tab-separated files of Long Range Arena:
  // basic_train.tsv and basic_test.tsv. Of the numbers above, only max_length
  // matters then: a longer expression is an error.
  std::filesystem::path path = {};
};

// Generated, and kept in the cache.
SequenceSplits load_listops(const ListOpsSource& source);

struct PathfinderSource {
  // Paddles of a long path: 14 is the hard set of Long Range Arena, 9 that
  // between.
  std::int64_t contour_length = 14;
  std::int64_t train_count = 40000;
  std::int64_t test_count = 2000;
  std::uint64_t seed = 1;
};

// Images of 32 x 32 pixels, whose grey values are the tokens; half of them show
// one path between the markers. Generated, and kept in the cache.
SequenceSplits load_pathfinder(const PathfinderSource& source);

struct AanSource {
  // The folder with new_aan_pairs.train.tsv and new_aan_pairs.test.tsv.
  std::filesystem::path path = {};
  // Longer texts are cut.
  std::int64_t max_length = 4000;
};

// Pairs of papers as bytes moved up by one (data/aan.h).
SequenceSplits load_aan(const AanSource& source);

struct SotuPairsSource {
  // Empty, or a folder as of sotu.
  std::filesystem::path path = {};
  std::int64_t length = 1024;  // bytes of a passage
  std::int64_t train_count = 20000;
  std::int64_t test_count = 2000;
  std::uint64_t seed = 1;
};

// Pairs of passages as bytes moved up by one (data/sotu_pairs.h).
SequenceSplits load_sotu_pairs(const SotuPairsSource& source);

struct ProbeSource {
  std::string name;          // recall, copy
  std::int64_t length = 64;  // tokens of an example, an even number
  std::int64_t pairs = 8;    // of keys and values, of recall
  std::int64_t train_count = 100000;
  std::int64_t test_count = 1000;
};

// Generated, and not kept: it takes no time.
ProbeSplits load_probes(const ProbeSource& source);

}  // namespace polyattn::data
