// Cuts a caller's workspace into aligned arrays. With a null base it only
// measures, so that the size asked for and the size used cannot differ.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyattn {

class Arena {
 public:
  static constexpr std::size_t kAlignment = 64;

  explicit Arena(std::byte* base) : base_(base) {
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    if (base != nullptr)
      base_ += (kAlignment - address % kAlignment) % kAlignment;
  }

  template <typename T>
  T* take(std::int64_t count) {
    const std::size_t begin = used_;
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + begin);
  }

  // Bytes taken, a multiple of kAlignment.
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

}  // namespace polyattn
