// The machine that a run is on, as its records name it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace polyattn::base {

// "AMD EPYC 7763, 2 cores": the processor as the system names it.
std::string machine_name();

// "2026-11-16T04:30:00Z"
std::string utc_now();

// The largest resident size of the process, as the kernel counts it, from
// construction on. Counts every page, also those that an allocation hides.
class PeakMemory {
 public:
  PeakMemory();

  // Bytes; nothing where /proc does not tell.
  std::optional<std::int64_t> peak() const;

  // Beyond what was resident at construction.
  std::optional<std::int64_t> growth() const;

 private:
  std::optional<std::int64_t> before_;
};

}  // namespace polyattn::base
