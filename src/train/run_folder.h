// The folder of a run: taken by one process at a time, and never mistaken for
// another run's.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/file_descriptor.h"
#include "train/run/config.h"

namespace polyattn::train {

class RunFolder {
 public:
  struct Options {
    bool resume = false;
    std::function<void(const std::string&)> warn = [](const std::string&) {};
    // Locks an open file without waiting; 0, or an error number.
    std::function<int(int file)> lock = lock_file;
  };

  // Makes the folder and takes it, until destruction or the end of the process.
  // Throws run::RecordError if another process has it, if it holds a run and
  // `resume` is false, or if that run has another config. A file system
  // without locks is worth a warning: the run goes on without one.
  RunFolder(std::filesystem::path path, const run::Config& config,
            const Options& options);

  // If a run began here and keep() was not called, it was refused: config and
  // records go, so that they do not stand in the way of a better config.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // There is something to resume.
  void keep() { is_new_ = false; }

 private:
  static int lock_file(int file);
  void take(const Options& options);
  void check_same(const run::Config& config) const;
  void remove_temporary_files() const;

  std::filesystem::path path_;
  base::FileDescriptor lock_;
  bool locked_ = false;
  bool is_new_ = false;  // no run was here, and keep() was not called
};

// Attention decides between its paths as it did in the run, whatever was
// measured since: by the costs in run.json, if it is there and has some.
void use_path_costs_of(const std::filesystem::path& folder);

}  // namespace polyattn::train
