// SIGINT and SIGTERM as a question that can be asked.
#pragma once

namespace polyattn::base {

inline constexpr int kExitInterrupted = 130;

// While it lives, the first of these signals sets stopped(); a second one ends
// the program at once, as if nobody had listened.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool stopped();
};

}  // namespace polyattn::base
