// npm, curl and apt-get as scripts, so that fetching can be tested without a
// network; and a small set to fetch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/catalogue.h"
#include "data/support.h"

namespace polyattn::data::test {

// While it lives, $PATH is one folder, in which there is nothing but what the
// test puts there and a few tools for its scripts.
class FakeTools {
 public:
  FakeTools();

  // A shell script. It may use $calls, a file to append to, and $archive.
  void add(std::string_view name, std::string_view script) const;

  // npm as it should be, and curl that serves $archive and understands
  // --continue-at. Both log their calls.
  void add_npm() const;
  void add_curl() const;

  // What the scripts logged, a line a call.
  std::string calls() const { return read_text(folder_ / "calls"); }

  // What there is to download.
  void serve(std::string_view bytes) const { folder_.write("archive", bytes); }

 private:
  static void link(const std::filesystem::path& bin, std::string_view tool,
                   std::string_view path);

  TemporaryFolder folder_;
  TestVariable path_;
};

// A tarball with the files `a` and `b`, and junk, and its catalogue entry.
class ToySet {
 public:
  ToySet();

  const SetEntry& entry() const { return entry_; }
  SetEntry& entry() { return entry_; }
  const std::string& archive() const { return archive_; }
  // Whether the folder is the set, and nothing else.
  testing::AssertionResult is_in(const std::filesystem::path& folder) const;

 private:
  std::string a_, b_, archive_;
  std::string a_digest_, b_digest_, archive_digest_;
  std::vector<Member> members_;
  std::vector<FileEntry> files_;
  SetEntry entry_;
};

}  // namespace polyattn::data::test
