// The Brown corpus of Francis and Kucera: 500 samples of American English of
// 1961, of some 2000 words each, as words with their parts of speech:
//
//   The/at jury/nn said/vbd it/pps did/dod ./.
//
// Only the words are kept, with a blank between them: a sentence is a line, and
// an empty line is between paragraphs. Quotes and stops are words.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::data {

// A sample. `source` is the name for messages. Throws DataError if a word has
// no part of speech, or there are no words.
std::string parse_brown(std::string_view text, std::string_view source);

// Those of a folder: ca01 to cr09, each letter a kind of prose. They are put
// into an order in which every stretch has about as many of each kind as the
// whole, so that what is held out at the end is like the rest. Throws
// DataError.
std::vector<std::string> read_brown(const std::filesystem::path& folder);

}  // namespace polyattn::data
