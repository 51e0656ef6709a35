#include "data/fake_tools.h"

#include <stdexcept>

#include "data/file.h"
#include "data/made_files.h"
#include "data/sha256.h"

namespace polyattn::data::test {

namespace fs = std::filesystem;

FakeTools::FakeTools() : path_("PATH", (folder_ / "bin").string()) {
  // The old value is gone by now, so the usual places must do.
  fs::create_directory(folder_ / "bin");
  for (const std::string_view tool : {"cat", "cp", "head", "tail", "wc"}) {
    link(folder_ / "bin", tool, "/usr/bin:/bin:/usr/local/bin");
  }
}

void FakeTools::link(const fs::path& bin, std::string_view tool,
                     std::string_view path) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    const fs::path candidate = fs::path(path.substr(0, end)) / tool;
    if (fs::exists(candidate)) {
      fs::create_symlink(candidate, bin / tool);
      return;
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  throw std::runtime_error("there is no " + std::string(tool));
}

void FakeTools::add(std::string_view name, std::string_view script) const {
  const fs::path file = folder_.write(
      "bin/" + std::string(name),
      "#!/bin/sh\ncalls='" + (folder_ / "calls").string() + "'\narchive='" +
          (folder_ / "archive").string() + "'\n" + std::string(script));
  fs::permissions(file, fs::perms::owner_all);
}

void FakeTools::add_npm() const {
  add("npm", R"(echo "npm $*" >> "$calls"
case "$1" in
  view) echo "https://registry.invalid/toy/-/toy-1.0.0.tgz" ;;
  pack) cp "$archive" toy-1.0.0.tgz ;;
esac
)");
}

void FakeTools::add_curl() const {
  add("curl", R"(offset=0
while [ $# -gt 0 ]; do
  if [ "$1" = --continue-at ]; then offset=$2; fi
  if [ "$1" = --url ]; then url=$2; fi
  shift
done
echo "curl $offset $url" >> "$calls"
tail -c +$((offset + 1)) "$archive"
)");
}

ToySet::ToySet() : a_("the first file"), b_("the second file") {
  // Incompressible, so that the archive has some length.
  for (unsigned i = 0; i < 300000; ++i) {
    b_.push_back(static_cast<char>((i * i * 2654435761U) >> 24));
  }
  archive_ = tarball(
      {{"package/junk", "junk"}, {"package/a", a_}, {"package/data/b", b_}});
  a_digest_ = sha256_of(a_);
  b_digest_ = sha256_of(b_);
  archive_digest_ = sha256_of(archive_);
  members_ = {{"package/a", a_.size()}, {"package/data/b", b_.size()}};
  files_ = {{"a", a_.size(), a_digest_}, {"b", b_.size(), b_digest_}};
  entry_ = {.name = "toy",
            .title = "a toy",
            .licence = "none",
            .package = "@scope/toy",
            .version = "1.0.0",
            .archive_size = archive_.size(),
            .archive_sha256 = archive_digest_,
            .members = members_,
            .files = files_};
}

testing::AssertionResult ToySet::is_in(const fs::path& folder) const {
  if (!fs::is_directory(folder)) {
    return testing::AssertionFailure() << "there is no " << folder;
  }
  if (names_in(folder) != std::vector<std::string>{"a", "b"}) {
    return testing::AssertionFailure() << "other files";
  }
  if (read_text(folder / "a") != a_ || read_text(folder / "b") != b_) {
    return testing::AssertionFailure() << "other content";
  }
  return testing::AssertionSuccess();
}

}  // namespace polyattn::data::test
