// SIGINT and SIGTERM as a question that can be asked.
#pragma once

namespace polyattn::base {

// While it lives, the first of these signals sets stopped(); a second one ends
// the program at once, as if nobody had listened.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool stopped();

  // Of a program that such a signal ended: 128 and its number, as a shell says.
  // Without one, that of SIGINT.
  static int exit_code();
};

}  // namespace polyattn::base
