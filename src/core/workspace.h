// The workspace of a call whose caller gave none. It is not initialised: to
// clear it would take longer than many a call.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace polyattn {

class Workspace {
 public:
  explicit Workspace(std::size_t bytes)
      : size_(bytes),
        data_(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}

  std::span<std::byte> span() const { return {data_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> data_;
};

}  // namespace polyattn
