#include "base/stop_signals.h"

#include <csignal>

namespace polyattn::base {
namespace {

// A handler can reach nothing else.
volatile std::sig_atomic_t stop_signal = 0;

extern "C" void request_stop(int number) {
  if (stop_signal == 0) stop_signal = number;
  std::signal(number, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool StopSignals::stopped() { return stop_signal != 0; }

int StopSignals::exit_code() {
  constexpr int kSignalled = 128;
  return kSignalled + (stopped() ? stop_signal : SIGINT);
}

}  // namespace polyattn::base
