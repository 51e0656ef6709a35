// Where the figures of a run go: metrics.jsonl, and TensorBoard if asked for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "train/run/records.h"
#include "train/run/tensorboard.h"

namespace polyattn::train {

class Recorder {
 public:
  struct Options {
    std::filesystem::path folder;
    std::int64_t keep_bytes = 0;  // of metrics.jsonl, from before
    std::int64_t step = 0;        // finished before
    bool tensorboard = false;
  };

  explicit Recorder(const Options& options);

  // A record of run/records.h.
  void write(const base::Json& record);

  // Forces what was written to the disk.
  void sync();

  std::int64_t bytes() const { return metrics_.bytes(); }

 private:
  run::MetricsWriter metrics_;
  std::unique_ptr<run::EventWriter> events_;
};

}  // namespace polyattn::train
