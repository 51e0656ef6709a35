// Compressed bytes, unpacked in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace polyattn::data {

bool is_gzip(std::span<const std::byte> bytes);

// Unpacks one or more gzip members. Throws DataError, which names the source,
// if they are damaged, cut short, followed by something else, or give more than
// max_bytes.
std::vector<std::byte> gunzip(std::span<const std::byte> bytes,
                              std::uint64_t max_bytes,
                              const std::string& source);

// The same of one stream of zlib, which has no name of its own.
std::vector<std::byte> inflate_zlib(std::span<const std::byte> bytes,
                                    std::uint64_t max_bytes,
                                    const std::string& source);

}  // namespace polyattn::data
