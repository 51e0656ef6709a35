// Any bytes either are a sample of the Brown corpus or throw DataError; what is
// taken has words alone, with one blank or line break between them.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "data/brown.h"
#include "data/sets.h"

namespace {

void require(bool condition, const char* message) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  // A copy, so that the sanitizer sees what is read beyond its end.
  const std::string text(data, data + size);
  try {
    const std::string words = polyattn::data::parse_brown(text, "x");
    require(!words.empty() && words.size() < text.size(), "not shorter");
    require(words.find("  ") == std::string::npos, "two blanks");
    require(words.find("\n\n\n") == std::string::npos, "two empty lines");
    require(words.front() != '\n' && words.back() != '\n', "an empty line");
  } catch (const polyattn::data::DataError& error) {
    const std::string what = error.what();
    require(!what.empty() && what.size() < 1000, "a message of any length");
    require(what.find('\n') == std::string::npos, "a message of two lines");
  }
  return 0;
}
