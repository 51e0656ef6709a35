#include "cli/theory_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/program.h"
#include "polyattn/activation.h"

namespace polyattn::cli {
namespace {

// A flag whose value is a list of whole numbers.
struct ListFlag {
  std::string_view name, text;
  std::int64_t least, most;

  [[noreturn]] void refuse(std::string_view part, std::string_view what) const {
    throw base::UsageError(
        fmt::format("{} {}: '{}' {}; give whole numbers from {} "
                    "to {}, such as 2,3 or {}..{}",
                    name, text, part, what, least, most, least,
                    std::min<std::int64_t>(most, 4 * least)));
  }

  std::int64_t number(std::string_view part) const {
    std::int64_t value = 0;
    const char* end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data(), end, value);
    if (rest != end || error == std::errc::invalid_argument) {
      refuse(part, "is no whole number");
    }
    if (error != std::errc{} || value < least || value > most) {
      refuse(part, "is out of range");
    }
    return value;
  }
};

// step gives the number after one of a range.
template <typename Step>
std::vector<std::int64_t> parse_list(const ListFlag& flag, const Step& step) {
  std::vector<std::int64_t> values;
  std::string_view rest = flag.text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    const std::size_t dots = part.find("..");
    if (dots == std::string_view::npos) {
      values.push_back(flag.number(part));
      continue;
    }
    const std::size_t before = values.size();
    const std::int64_t from = flag.number(part.substr(0, dots));
    const std::int64_t to = flag.number(part.substr(dots + 2));
    for (std::int64_t value = step(from - 1); value <= to;
         value = step(value)) {
      values.push_back(value);
    }
    if (values.size() == before) flag.refuse(part, "holds nothing");
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

std::vector<int> parse_degrees(const std::string& text) {
  const auto values = parse_list({"--degrees", text, 1, kMaxDegree},
                                 [](std::int64_t value) { return value + 1; });
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> parse_lengths(const std::string& text) {
  return parse_list(
      {"--lengths", text, theory::kLeastTokens, theory::kMostTokens},
      [](std::int64_t value) {
        std::int64_t power = 1;
        while (power <= value) power *= 2;
        return power;
      });
}

}  // namespace polyattn::cli
