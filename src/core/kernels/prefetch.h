// Brings rows that will be needed soon into the cache, a few lines at a time,
// between the tiles of the work at hand. Many short heads, or short blocks of
// keys, come one after the other from memory, too fast for the machine's own
// prefetcher to be of help.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/problem.h"
#include "hwy/cache_control.h"
#include "polyattn/tensor.h"

namespace polyattn {

class Prefetcher {
 public:
  static constexpr std::int64_t kLine = 64;

  // `rows` rows of `bytes` bytes, `stride` bytes apart.
  void Add(const void* data, std::int64_t rows, std::int64_t bytes,
           std::int64_t stride) {
    if (rows <= 0 || bytes <= 0 || count_ == regions_.size()) return;
    // Rows that touch each other are one long row.
    if (stride == bytes) {
      bytes *= rows;
      rows = 1;
    }
    regions_[count_++] = {static_cast<const std::byte*>(data), rows, bytes,
                          stride};
    lines_ += rows * ((bytes + kLine - 1) / kLine);
  }

  // `rows` rows of a head of a tensor.
  void AddRows(const ConstTensor& t, std::int64_t batch, std::int64_t head,
               std::int64_t row, std::int64_t rows) {
    const auto element = static_cast<std::int64_t>(size_of(t.dtype));
    const auto* data = static_cast<const std::byte*>(t.data);
    Add(data + row_offset(t.stride, batch, head, row) * element, rows,
        t.size[3] * element, t.stride[2] * element);
  }

  // Spreads what there is over this many steps.
  void Spread(std::int64_t steps) {
    per_step_ = steps > 0 ? (lines_ + steps - 1) / steps : 0;
  }

  void Step() {
    for (std::int64_t i = 0; i < per_step_ && at_ < count_; ++i) Line();
  }

 private:
  struct Region {
    const std::byte* row;
    std::int64_t rows, bytes, stride;
  };

  void Line() {
    Region& r = regions_[at_];
    hwy::Prefetch(r.row + byte_);
    byte_ += kLine;
    if (byte_ < r.bytes) return;
    byte_ = 0;
    r.row += r.stride;
    if (--r.rows == 0) ++at_;
  }

  std::array<Region, 8> regions_{};
  std::size_t count_ = 0, at_ = 0;
  std::int64_t byte_ = 0, lines_ = 0, per_step_ = 0;
};

}  // namespace polyattn
