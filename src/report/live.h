// Runs as they go on: what the dashboard serves, kept up to date.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "report/document.h"
#include "report/find_runs.h"
#include "report/run_files.h"

namespace polyattn::report {

// Documents that belong together.
struct Snapshot {
  std::shared_ptr<const std::string> report;  // the report document
  std::shared_ptr<const std::string> runs;    // the list of runs
};

// refresh() is for one thread, snapshot() for any.
class LiveRuns {
 public:
  // Throws std::runtime_error if `folder` is none. There need be no runs in it
  // yet. options.live is taken to be true.
  LiveRuns(const std::filesystem::path& folder, DocumentOptions options);

  // Looks for runs and for changes in them. Gives the names of those that have
  // changed, appeared or vanished; if there are any, the snapshot is new. Only
  // files that have changed are read, and of metrics.jsonl only what was added.
  std::vector<std::string> refresh(const std::stop_token& stop = {});

  Snapshot snapshot() const;

  // What is wrong with the runs of the last refresh().
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<RunFiles*> find_changes(const std::stop_token& stop,
                                      std::vector<std::string>& changed);
  void publish(const std::vector<RunFiles*>& runs);

  std::filesystem::path root_;
  DocumentBuilder builder_;
  std::map<std::string, std::unique_ptr<RunFiles>> files_;  // by name
  std::vector<std::string> warnings_;
  mutable std::mutex mutex_;
  Snapshot snapshot_;  // guarded by mutex_
};

}  // namespace polyattn::report
