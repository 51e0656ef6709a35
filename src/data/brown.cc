#include "data/brown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/message.h"
#include "base/random.h"
#include "data/file.h"
#include "data/sets.h"

namespace polyattn::data {
namespace {

constexpr std::string_view kBlanks = " \t\r";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// ca01
bool is_sample(std::string_view name) {
  return name.size() == 4 && name[0] == 'c' && name[1] >= 'a' &&
         name[1] <= 'r' && is_digit(name[2]) && is_digit(name[3]);
}

// The word of "word/tag"; words have slashes too ("1/2/cd"). Empty if it is
// none.
std::string_view word_of(std::string_view token) {
  const std::size_t slash = token.rfind('/');
  const bool tagged =
      slash != std::string_view::npos && slash > 0 && slash + 1 < token.size();
  return tagged ? token.substr(0, slash) : "";
}

// The words of a line.
std::string sentence_of(std::string_view line, std::string_view source,
                        std::int64_t number) {
  std::string sentence;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) return sentence;
    const std::string_view token =
        line.substr(0, std::min(line.find_first_of(kBlanks), line.size()));
    line.remove_prefix(token.size());
    const std::string_view word = word_of(token);
    if (word.empty()) {
      throw DataError(fmt::format(
          "cannot read {}: line {}: {} is no word with its part of speech, as "
          "said/vbd",
          source, number, base::in_quotes(token)));
    }
    if (!sentence.empty()) sentence += ' ';
    sentence += word;
  }
}

}  // namespace

std::string parse_brown(std::string_view text, std::string_view source) {
  std::string result;
  bool paragraph = false;  // has ended
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string sentence =
        sentence_of(text.substr(0, end), source, number);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (sentence.empty()) {
      paragraph = true;
      continue;
    }
    if (!result.empty()) result += paragraph ? "\n\n" : "\n";
    result += sentence;
    paragraph = false;
  }
  if (!result.empty()) return result;
  throw DataError(fmt::format("cannot read {}: it has no words", source));
}

std::vector<std::string> read_brown(const std::filesystem::path& folder) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names,
                [](const std::string& name) { return !is_sample(name); });
  if (names.empty()) {
    throw DataError(fmt::format(
        "cannot read {}: the folder has none of the samples of the Brown "
        "corpus, ca01 to cr09",
        folder.string()));
  }
  // Multiples of the golden ratio, modulo 1, are spread evenly.
  std::vector<std::uint64_t> order(names.size());
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::sort(order.begin(), order.end(), [](std::uint64_t a, std::uint64_t b) {
    return a * base::kRandomStep < b * base::kRandomStep;
  });
  std::vector<std::string> samples;
  for (const std::uint64_t i : order) {
    const std::filesystem::path path = folder / names[i];
    samples.push_back(parse_brown(read_text(path), path.string()));
  }
  return samples;
}

}  // namespace polyattn::data
