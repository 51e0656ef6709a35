#include "base/machine.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

namespace polyattn::base {
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

// The text after the colon of the first line that begins with `field`.
std::string processor_field(const std::string& field) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with(field) && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return {};
}

}  // namespace

std::string machine_name() {
  std::string name = processor_field("model name");
  if (name.empty()) name = "unknown processor";
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  return name + ", " + std::to_string(cores) +
         (cores == 1 ? " core" : " cores");
}

std::string utc_now() {
  const std::time_t now =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::string text(32, '\0');
  text.resize(
      std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts));
  return text;
}

PeakMemory::PeakMemory() {
  if (reset_peak()) before_ = status_bytes("VmRSS");
}

std::optional<std::int64_t> PeakMemory::peak() const {
  return before_ ? status_bytes("VmHWM") : std::nullopt;
}

std::optional<std::int64_t> PeakMemory::growth() const {
  const auto peak = status_bytes("VmHWM");
  if (!before_ || !peak) return std::nullopt;
  return std::max<std::int64_t>(0, *peak - *before_);
}

}  // namespace polyattn::base
