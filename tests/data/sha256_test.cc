#include "data/sha256.h"

#include <gtest/gtest.h>

#include "data/support.h"

namespace polyattn::data::sha256_test {
namespace {

using test::bytes_of;
using test::error_of;
using test::has;
using test::TemporaryFolder;

// The examples of FIPS 180-4, and the empty message.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256_of(std::string_view()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(
      sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Around the ends of blocks the padding changes its shape.
TEST(Sha256, DoesNotDependOnHowTheBytesArrive) {
  std::string text;
  for (int i = 0; i < 200; ++i) text.push_back(static_cast<char>(i * 7));
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string_view whole = std::string_view(text).substr(0, size);
    Sha256 hash;
    for (std::size_t at = 0; at < size; at += 13) {
      hash.update(bytes_of(whole.substr(at, 13)));
    }
    EXPECT_EQ(hash.finish(), sha256_of(whole)) << size;
  }
}

TEST(Sha256, DigestsAFileInPieces) {
  const TemporaryFolder folder;
  const std::string text(1000000, 'a');
  EXPECT_EQ(sha256_of_file(folder.write("a", text)), sha256_of(text));
  EXPECT_EQ(sha256_of_file(folder.write("empty", "")), sha256_of(""));
}

TEST(Sha256, NamesTheFileThatCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_TRUE(has(error_of([&] { sha256_of_file(folder / "absent"); }),
                  (folder / "absent").string()));
  EXPECT_TRUE(has(error_of([&] { sha256_of_file(folder.path()); }),
                  "not a regular file"));
}

}  // namespace
}  // namespace polyattn::data::sha256_test
