// The folder of a run: taken by one process at a time, and never mistaken for
// another run's.
#pragma once

#include <filesystem>
#include <string>

#include "base/file_descriptor.h"
#include "train/run/config.h"

namespace polyattn::train {

class RunFolder {
 public:
  // Makes the folder and takes it, until destruction or the end of the process.
  // Throws run::RecordError if another process has it, if it holds a run and
  // `resume` is false, or if that run has another config.
  RunFolder(std::filesystem::path path, const run::Config& config, bool resume);

  const std::filesystem::path& path() const { return path_; }

 private:
  void take();
  void check_same(const run::Config& config) const;

  std::filesystem::path path_;
  base::FileDescriptor lock_;
};

}  // namespace polyattn::train
