#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "polyattn/plan.h"
#include "train/run/records.h"

namespace polyattn::train {
namespace {

namespace fs = std::filesystem;

// What flock() says where the file system knows no locks.
bool means_no_locks(int error) {
  return error == ENOLCK || error == EOPNOTSUPP || error == ENOTSUP ||
         error == ENOSYS;
}

}  // namespace

RunFolder::RunFolder(fs::path path, const run::Config& config,
                     const Options& options)
    : path_(std::move(path)) {
  fs::create_directories(path_);
  take(options);
  const fs::path file = path_ / "config.toml";
  if (!fs::exists(file)) {
    run::write_config(file, config);
    is_new_ = true;
    return;
  }
  if (!options.resume) {
    throw run::RecordError("[train] " + path_.string() +
                           " holds a run already: go on with --resume, or "
                           "choose another folder with --out");
  }
  check_same(config);
  if (locked_) remove_temporary_files();
}

// The lock file stays: another process may be waiting to open it.
RunFolder::~RunFolder() {
  if (!is_new_) return;
  std::error_code ignored;
  for (const char* name : {"config.toml", "run.json", "metrics.jsonl",
                           "tokenizer.model", "checkpoints"}) {
    fs::remove(path_ / name, ignored);  // a folder only if it is empty
  }
}

int RunFolder::lock_file(int file) {
  return ::flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

void RunFolder::take(const Options& options) {
  const fs::path file = path_ / ".lock";
  lock_ = base::FileDescriptor(
      ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  if (!lock_.is_open()) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot write " + file.string());
  }
  const int error = options.lock(lock_.get());
  locked_ = error == 0;
  if (locked_) return;
  if (error == EWOULDBLOCK) {
    throw run::RecordError("[train] another process is training in " +
                           path_.string());
  }
  if (!means_no_locks(error)) {
    throw std::system_error(error, std::generic_category(),
                            "cannot lock " + file.string());
  }
  options.warn("the file system of " + path_.string() +
               " has no locks: see to it that no other process trains there");
}

void RunFolder::check_same(const run::Config& config) const {
  const fs::path file = path_ / "config.toml";
  const auto differences =
      run::config_differences(run::read_run_config(path_), config);
  if (differences.empty()) return;
  throw run::RecordError("[train] " + file.string() + ": " +
                         differences.front() +
                         ": choose another folder with --out");
}

// Killed processes leave them (base/atomic_file.h).
void RunFolder::remove_temporary_files() const {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::path& folder : {path_, path_ / "checkpoints"}) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().extension() == ".tmp") found.push_back(entry.path());
    }
  }
  for (const fs::path& file : found) fs::remove(file, ignored);
}

void use_path_costs_of(const fs::path& folder) {
  if (!fs::exists(folder / "run.json")) return;
  const auto costs = run::read_run_info(folder).path_costs;
  if (!costs) return;
  try {
    set_path_costs(parse_path_costs(*costs));
  } catch (const std::invalid_argument& error) {
    throw run::RecordError((folder / "run.json").string() +
                           ": \"path_costs\": " + error.what());
  }
}

}  // namespace polyattn::train
