#include "report/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/json_text.h"
#include "report/run_json.h"

namespace polyattn::report {
namespace {

using base::Json;

std::filesystem::path checked_root(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::path root = std::filesystem::canonical(folder, error);
  if (!error && std::filesystem::is_directory(root)) return root;
  throw std::runtime_error(
      fmt::format("cannot read {}: {}", folder.string(),
                  error ? error.message() : "it is no folder"));
}

DocumentOptions live_options(DocumentOptions options) {
  options.live = true;
  return options;
}

Json list_entry(const RunFiles& run) {
  const RunFacts& facts = run.facts();
  const run::RunInfo& info = facts.info;
  Json entry = {
      {"name", facts.name},
      {"folder", run.folder().string()},
      {"task", run::subject_of(info)},
      {"activation", info.activation},
      {"seed", info.seed},
      {"state", run::name_of(info.state)},
      {"step", shown_step(info, run.series())},
      {"steps", info.steps},
      {"loss", info.result ? base::number(info.result->loss) : Json()},
      {"updated", facts.updated}};
  if (info.variant) entry["variant"] = *info.variant;
  return entry;
}

}  // namespace

LiveRuns::LiveRuns(const std::filesystem::path& folder, DocumentOptions options)
    : root_(checked_root(folder)), builder_(live_options(std::move(options))) {
  publish({});
}

std::vector<std::string> LiveRuns::refresh(const std::stop_token& stop) {
  std::vector<std::string> changed;
  const std::vector<RunFiles*> runs = find_changes(stop, changed);
  if (!changed.empty() && !stop.stop_requested()) publish(runs);
  for (const auto& [name, run] : files_) {
    for (std::string& warning : run->warnings()) {
      warnings_.push_back(std::move(warning));
    }
  }
  return changed;
}

std::vector<RunFiles*> LiveRuns::find_changes(
    const std::stop_token& stop, std::vector<std::string>& changed) {
  Search search = find_runs_beneath(root_);
  warnings_ = std::move(search.warnings);
  std::map<std::string, std::unique_ptr<RunFiles>> before;
  before.swap(files_);
  std::vector<RunFiles*> readable;
  for (const FoundRun& found : search.runs) {
    if (stop.stop_requested()) break;
    auto old = before.extract(found.name);
    std::unique_ptr<RunFiles>& run = files_[found.name];
    run = !old.empty() && old.mapped()->folder() == found.folder
              ? std::move(old.mapped())
              : std::make_unique<RunFiles>(found, root_);
    const bool was_readable = run->readable();
    const bool is_new = run->refresh(stop);
    if (run->readable()) readable.push_back(run.get());
    if (is_new && (was_readable || run->readable())) {
      changed.push_back(found.name);
    }
  }
  for (const auto& [name, run] : before) changed.push_back(name);
  return readable;
}

void LiveRuns::publish(const std::vector<RunFiles*>& runs) {
  Json list = Json::array();
  for (const RunFiles* run : runs) list.push_back(list_entry(*run));
  Snapshot next{std::make_shared<const std::string>(builder_.build(runs)),
                std::make_shared<const std::string>(base::printed(list))};
  const std::lock_guard lock(mutex_);
  snapshot_ = std::move(next);
}

Snapshot LiveRuns::snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

}  // namespace polyattn::report
