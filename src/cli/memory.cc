#include "cli/memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace polyattn::cli {
namespace {

// Bytes in a line such as "VmHWM:   1234 kB" of /proc/self/status.
std::optional<std::int64_t> status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::int64_t kilobytes = 0;
  while (status >> word) {
    if (word == field + ":" && status >> kilobytes) return kilobytes * 1024;
    std::getline(status, word);
  }
  return std::nullopt;
}

// Makes VmHWM start again from VmRSS (proc(5), clear_refs).
bool reset_peak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  return clear.good();
}

}  // namespace

PeakMemory::PeakMemory() {
  if (reset_peak()) before_ = status_bytes("VmRSS");
}

std::optional<std::int64_t> PeakMemory::growth() const {
  const auto peak = status_bytes("VmHWM");
  if (!before_ || !peak) return std::nullopt;
  return std::max<std::int64_t>(0, *peak - *before_);
}

}  // namespace polyattn::cli
