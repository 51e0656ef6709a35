#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <system_error>

#include "train/run/records.h"

namespace polyattn::train {
namespace {

namespace fs = std::filesystem;

}  // namespace

RunFolder::RunFolder(fs::path path, const run::Config& config, bool resume)
    : path_(std::move(path)) {
  fs::create_directories(path_);
  take();
  const fs::path file = path_ / "config.toml";
  if (fs::exists(file)) {
    if (!resume) {
      throw run::RecordError("[train] " + path_.string() +
                             " holds a run already: go on with --resume, or "
                             "choose another folder with --out");
    }
    check_same(config);
    return;
  }
  run::write_config(file, config);
}

void RunFolder::take() {
  const fs::path file = path_ / ".lock";
  lock_ = base::FileDescriptor(
      ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  if (!lock_.is_open()) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot write " + file.string());
  }
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw run::RecordError("[train] another process is training in " +
                           path_.string());
  }
}

void RunFolder::check_same(const run::Config& config) const {
  const fs::path file = path_ / "config.toml";
  const auto differences =
      run::config_differences(run::read_config(file), config);
  if (differences.empty()) return;
  throw run::RecordError("[train] " + file.string() + ": " +
                         differences.front() +
                         ": choose another folder with --out");
}

}  // namespace polyattn::train
