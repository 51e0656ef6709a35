#include "base/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/program.h"

namespace polyattn::base {
namespace {

double seconds_in(std::string_view unit) {
  if (unit.empty() || unit == "s") return 1;
  if (unit == "m" || unit == "min") return 60;
  return unit == "h" ? 3600 : 0;
}

}  // namespace

double parse_duration(std::string_view text) {
  double seconds = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    double value = 0;
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc() || !std::isfinite(value)) break;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const std::size_t letters =
        std::min(rest.find_first_of("0123456789."), rest.size());
    const double unit = seconds_in(rest.substr(0, letters));
    if (unit == 0) break;
    rest.remove_prefix(letters);
    seconds += value * unit;
  }
  if (!rest.empty() || !(seconds > 0)) {
    throw UsageError(
        fmt::format("\"{}\" is no duration: write 90s, 5m or 1h30m", text));
  }
  if (seconds > kMaxDurationSeconds) {
    throw UsageError(fmt::format("\"{}\" is too long: at most {:.0f}h, a year",
                                 text, kMaxDurationSeconds / 3600));
  }
  return seconds;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600)
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace polyattn::base
