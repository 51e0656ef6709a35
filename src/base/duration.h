// Durations as people write them: 90s, 5m, 1h30m, 2.5m; a bare number is
// seconds.
#pragma once

#include <string>
#include <string_view>

namespace polyattn::base {

// A year. Longer ones are a slip of the pen, and must not overflow what is
// computed from them.
inline constexpr double kMaxDurationSeconds = 365.0 * 24 * 3600;

// Seconds, more than 0 and at most kMaxDurationSeconds. Throws UsageError.
double parse_duration(std::string_view text);

// "4 min 05 s", "12 s", "1 h 02 min"
std::string duration_text(double seconds);

}  // namespace polyattn::base
