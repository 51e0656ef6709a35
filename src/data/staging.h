// A folder of the cache in the making: it appears whole or not at all.
//
// Everything happens in .staging/NAME beside the destination, on the same file
// system. A lock keeps a second process out for as long as this one lives; the
// system lifts it when a process is killed, and the next one finds what was
// left: a download goes on where it stopped, everything else begins again.
#pragma once

#include <filesystem>
#include <functional>

#include "base/file_descriptor.h"

namespace polyattn::data {

// Every function throws DataError.
class Staging {
 public:
  // Takes the lock; if another process has it, calls on_wait, once, and waits.
  explicit Staging(std::filesystem::path destination,
                   const std::function<void()>& on_wait = {});
  // Without commit() nothing has happened, but downloads() is kept.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Empty at first: what will be the destination.
  std::filesystem::path content() const { return folder_ / "content"; }
  // Empty at first: for what is needed on the way.
  std::filesystem::path scratch() const { return folder_ / "scratch"; }
  // May hold what an earlier process left.
  std::filesystem::path downloads() const { return folder_ / "downloads"; }

  // Forces the content to the disk and puts it in the place of the destination,
  // which is replaced in one step if it is there. The last call.
  void commit();

 private:
  void lock(const std::function<void()>& on_wait);
  void recover() const;
  void swap_in() const;
  std::filesystem::path replaced() const { return folder_ / "replaced"; }

  std::filesystem::path destination_;
  std::filesystem::path folder_;
  base::FileDescriptor lock_;
};

}  // namespace polyattn::data
