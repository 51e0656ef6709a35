// Plain text of bytes for language models, and what of it is held out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/sets.h"

namespace polyattn::data {

// Two newlines between documents, and the last `test_share` of the bytes held
// out: from the border of a document that is nearest, none of the two parts
// being empty. `source` is the name for messages. Throws DataError.
TextSplits split_documents(const std::vector<std::string>& documents,
                           double test_share, const std::string& source);

// The last `test_share` of the bytes, from the line that begins nearest. If
// that would make the part that is held out smaller or larger by half, as in a
// text of one line, it begins within a line.
TextSplits split_lines(std::string text, double test_share,
                       const std::string& source);

// The .txt files of a folder, in the order of their names, each of which begins
// with a year: 1790_george_washington_n.txt.
std::vector<std::string> read_years(const std::filesystem::path& folder);

// A file, or the .txt files of a folder in the order of their names, with two
// newlines between them.
std::string read_texts(const std::filesystem::path& path);

}  // namespace polyattn::data
