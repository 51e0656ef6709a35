// Pairs of papers, Long Range Arena's Retrieval: does one cite the other? Its
// files are made of the ACL Anthology Network (AAN). A line is a pair:
//
//   LABEL<TAB>ID<TAB>ID<TAB>TEXT<TAB>TEXT
//
// LABEL is 0 or 1, also 0.0 or 1.0. Nothing is quoted, and there is no header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "data/sets.h"

namespace polyattn::data {

// The pairs of a file, of each text at most so many bytes, each moved up by
// one. `name` is that of the file, for messages. Throws DataError, which names
// the file and the line.
SequenceSet parse_aan_file(std::string_view text, std::string_view name,
                           std::int64_t max_length);

}  // namespace polyattn::data
