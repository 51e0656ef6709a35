// The largest resident size of the process, as the kernel counts it.
#pragma once

#include <cstdint>
#include <optional>

namespace polyattn::cli {

// Measures how far the resident size of the process rises above where it was
// at construction. Counts every page, also those that an allocation hides.
class PeakMemory {
 public:
  PeakMemory();

  // Bytes; nothing where /proc does not tell.
  std::optional<std::int64_t> growth() const;

 private:
  std::optional<std::int64_t> before_;
};

}  // namespace polyattn::cli
