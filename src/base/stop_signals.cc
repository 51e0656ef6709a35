#include "base/stop_signals.h"

#include <csignal>

namespace polyattn::base {
namespace {

// A handler can reach nothing else.
volatile std::sig_atomic_t stop_requested = 0;

extern "C" void request_stop(int number) {
  stop_requested = 1;
  std::signal(number, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  stop_requested = 0;
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool StopSignals::stopped() { return stop_requested != 0; }

}  // namespace polyattn::base
