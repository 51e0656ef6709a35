// Synthetic probes of a language model: what it must look up in what it read.
// Examples are drawn at random, and answers alone count.
//
// recall  `pairs` keys, each with its value, then slots of two tokens to the
// end:
//         in as many of these as there are pairs, at random places, a key and
//         the value that it had, each key once, in random order; in the others
//         noise. Asked is the value behind the key. (Multi-query associative
//         recall.) Keys differ; values may be the same.
// copy    Random letters, a bar, and the same letters again, but for the last,
//         which nothing follows. Asked is what follows the bar and all behind
//         it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/load.h"
#include "data/sets.h"

namespace polyattn::data {

// Tokens; 0 is none of them.
inline constexpr std::int64_t kProbeNoise = 16;    // 1 ..
inline constexpr std::int64_t kProbeKeys = 64;     // then keys
inline constexpr std::int64_t kProbeValues = 64;   // then values
inline constexpr std::int64_t kProbeLetters = 26;  // 1 .., then the bar

// `count` examples of `length` tokens of the source, a function of these, of
// the source and of `seed`. Throws DataError for what has no such examples: an
// odd length, more pairs than keys, less room than the pairs and their
// questions take.
ProbeSet make_probes(const ProbeSource& source, std::int64_t count,
                     std::uint64_t seed);

// "k7", "v63", "." or "a", "|": to look at.
std::string probe_token(std::string_view name, std::int64_t token);

}  // namespace polyattn::data
