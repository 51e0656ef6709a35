// Expressions of ListOps in the files of Long Range Arena: a line of
// "Source<TAB>Target", then one for each expression, its text and its value.
//
//   ( ( ( [MAX 4 ) 3 ) ] )<TAB>4
//
// Every function throws DataError, which names the file and the line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "data/load.h"
#include "data/sets.h"

namespace polyattn::data {

// Lines end in a newline, which may have a carriage return before it (Python's
// csv module writes one). Every value is computed and compared. `name` is that
// of the file, for messages.
SequenceSet parse_listops_file(std::string_view text, std::string_view name,
                               std::int64_t max_length);

SequenceSet read_listops_file(const std::filesystem::path& path,
                              std::int64_t max_length);

void write_listops_file(const std::filesystem::path& path,
                        const SequenceSet& set);

// Where the set that these numbers describe is kept. `source.path` is not used.
std::filesystem::path listops_folder(const ListOpsSource& source);

}  // namespace polyattn::data
