// The workspace of a call whose caller gave none. It is not initialised: to
// clear it would take longer than many a call. For the same reason a thread
// keeps the last one, if it is not large: memory that is fresh from the system
// comes at a page fault for every 4 KB, which took a tenth of a backward pass
// of 1024 tokens.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace polyattn {

class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : block_(std::exchange(kept(), {})) {
    if (block_.size < bytes) {
      block_ = {};  // before the new one, so that both are never there
      block_ = {bytes, std::make_unique_for_overwrite<std::byte[]>(bytes)};
    }
  }
  ~Workspace() {
    if (block_.size <= kMostKept && block_.size > kept().size)
      kept() = std::move(block_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  std::span<std::byte> span() const { return {block_.data.get(), block_.size}; }

 private:
  struct Block {
    std::size_t size = 0;
    std::unique_ptr<std::byte[]> data = {};
  };

  static constexpr std::size_t kMostKept = std::size_t{64} << 20;

  // Of this thread. A call takes it and brings it back, so that a call inside
  // of another has one of its own.
  static Block& kept() {
    thread_local Block block;
    return block;
  }

  Block block_;
};

// What gives a call its memory when the size is known: that of the caller, if
// it is large enough,
inline auto given(const char* op, std::span<std::byte> workspace) {
  return [=](std::size_t needed) {
    if (workspace.size() < needed)
      throw std::invalid_argument("[" + std::string(op) + "] workspace of " +
                                  std::to_string(workspace.size()) +
                                  " bytes < " + std::to_string(needed) +
                                  " needed");
    return workspace.data();
  };
}

// or one that lives in `own`.
inline auto owned(std::optional<Workspace>& own) {
  return [&own](std::size_t needed) {
    own.emplace(needed);
    return own->span().data();
  };
}

}  // namespace polyattn
