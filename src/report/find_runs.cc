#include "report/find_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "report/files.h"
#include "report/text.h"

namespace polyattn::report {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLevels = 3;
// So that a folder named by mistake, such as /, is not searched for hours.
constexpr std::size_t kMaxFolders = 20'000;
constexpr std::size_t kMaxNameBytes = 500;

class Finder {
 public:
  // Empty: anywhere.
  explicit Finder(fs::path root) : root_(std::move(root)) {}

  void visit(const fs::path& folder, int level);

  std::vector<fs::path>& runs() { return runs_; }
  std::vector<std::string>& warnings() { return warnings_; }

 private:
  void visit_inner(const fs::path& folder, int level);
  void warn_of_half_a_run(const fs::path& folder);
  bool is_full();

  fs::path root_;
  std::set<fs::path> visited_;
  std::vector<fs::path> runs_;
  std::vector<std::string> warnings_;
  bool full_ = false;
};

bool Finder::is_full() {
  const bool full = runs_.size() >= kMaxRuns || visited_.size() >= kMaxFolders;
  if (full && !full_) {
    warnings_.push_back(fmt::format(
        "there are more than {} runs or {} folders: the rest is left out",
        kMaxRuns, kMaxFolders));
  }
  full_ = full;
  return full;
}

void Finder::visit(const fs::path& folder, int level) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || is_full()) return;
  if (!root_.empty() && !is_beneath(real, root_)) {
    warnings_.push_back(fmt::format("{} leads out of {}: it is left out",
                                    folder.string(), root_.string()));
    return;
  }
  if (!visited_.insert(real).second) return;
  if (file_state(real / "run.json").exists()) {
    runs_.push_back(real);
    return;
  }
  warn_of_half_a_run(real);
  if (level < kMaxLevels) visit_inner(real, level);
}

void Finder::visit_inner(const fs::path& folder, int level) {
  std::error_code error;
  std::vector<fs::path> inner;
  // The runs of a search, which grid.json sums up.
  const bool searched = file_state(folder / "grid.json").exists();
  for (fs::directory_iterator entry(folder, error), end;
       !error && entry != end && inner.size() < kMaxFolders;
       entry.increment(error)) {
    std::error_code ignored;
    const bool hidden = entry->path().filename().string().front() == '.';
    if (hidden || (searched && entry->path().filename() == "grid")) continue;
    if (entry->is_directory(ignored)) inner.push_back(entry->path());
  }
  if (error) {
    warnings_.push_back(
        fmt::format("cannot read {}: {}", folder.string(), error.message()));
  }
  std::sort(inner.begin(), inner.end());
  for (const fs::path& path : inner) visit(path, level + 1);
}

void Finder::warn_of_half_a_run(const fs::path& folder) {
  if (!file_state(folder / "metrics.jsonl").exists()) return;
  warnings_.push_back(fmt::format(
      "{} has metrics.jsonl but no run.json: it is left out", folder.string()));
}

// The folder that holds all of them, none of which it is itself.
fs::path common_folder(const std::vector<fs::path>& runs) {
  if (runs.empty()) return {};
  fs::path common = runs.front().parent_path();
  for (const fs::path& run : runs) {
    while (!is_beneath(run.parent_path(), common)) {
      common = common.parent_path();
    }
  }
  return common;
}

std::vector<FoundRun> named(std::vector<fs::path> runs,
                            const fs::path& common) {
  std::set<std::string> taken;
  std::vector<FoundRun> found;
  for (fs::path& run : runs) {
    const fs::path relative = run.lexically_relative(common);
    const std::string plain = cut_text(
        relative == "." ? run.filename().string() : relative.generic_string(),
        kMaxNameBytes);
    // Names that are cut, or no UTF-8, may become equal.
    std::string name = plain;
    for (int i = 2; !taken.insert(name).second; ++i) {
      name = fmt::format("{} ({})", plain, i);
    }
    found.push_back({std::move(run), std::move(name)});
  }
  return found;
}

void check_folder(const fs::path& folder) {
  std::error_code error;
  const auto status = fs::status(folder, error);
  if (fs::is_directory(status)) return;
  throw std::runtime_error(fmt::format(
      "cannot read {}: {}", folder.string(),
      fs::exists(status) ? "it is no folder" : "there is no such folder"));
}

}  // namespace

Search find_runs(const std::vector<fs::path>& folders) {
  Finder finder({});
  for (const fs::path& folder : folders) {
    check_folder(folder);
    finder.visit(folder, 0);
  }
  const fs::path common = common_folder(finder.runs());
  return {named(std::move(finder.runs()), common),
          std::move(finder.warnings())};
}

Search find_runs_beneath(const fs::path& root) {
  Finder finder(root);
  finder.visit(root, 0);
  return {named(std::move(finder.runs()), root), std::move(finder.warnings())};
}

}  // namespace polyattn::report
