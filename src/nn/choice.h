// Options that are one of a few words.
#pragma once

#include <initializer_list>
#include <string>

namespace polyattn::nn {

// Throws c10::Error: [op] option "value" is none of a, b, c.
void check_choice(const char* op, const char* option, const std::string& value,
                  std::initializer_list<const char*> choices);

// A probability that something is dropped: in [0, 1).
void check_rate(const char* op, const char* option, double rate);

}  // namespace polyattn::nn
