#include "data/gzip.h"

#include <gtest/gtest.h>

#include "data/made_files.h"
#include "data/support.h"

namespace polyattn::data::gzip_test {
namespace {

using test::bytes_of;
using test::error_of;
using test::gzipped;
using test::has;

std::string unpacked(std::string_view packed, std::uint64_t max_bytes) {
  const std::vector<std::byte> bytes =
      gunzip(bytes_of(packed), max_bytes, "a.gz");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string refusal(std::string_view packed, std::uint64_t max_bytes) {
  return error_of([&] { unpacked(packed, max_bytes); });
}

TEST(Gzip, UnpacksContentOfAnyLength) {
  for (const std::size_t size : {0, 1, 4095, 4096, 4097, 1000000}) {
    const std::string text(size, 'x');
    EXPECT_EQ(unpacked(gzipped(text), 1000000), text) << size;
  }
}

TEST(Gzip, UnpacksMembersThatFollowEachOther) {
  EXPECT_EQ(unpacked(gzipped("one ") + gzipped("") + gzipped("two"), 100),
            "one two");
}

TEST(Gzip, RefusesWhatIsCutShortAnywhere) {
  const std::string whole = gzipped("some text that is worth the while");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(has(refusal(whole.substr(0, size), 1000), "a.gz")) << size;
  }
}

TEST(Gzip, RefusesDamage) {
  std::string packed = gzipped(std::string(1000, 'x'));
  packed[packed.size() - 6] ^= 1;  // the checksum
  EXPECT_TRUE(has(refusal(packed, 1000), "damaged"));
  EXPECT_TRUE(has(refusal(gzipped("x") + "rest", 1000), "damaged"));
  EXPECT_TRUE(has(refusal("plain text", 1000), "not a gzipped file"));
}

// The last four bytes claim a length; neither more nor less must be believed.
TEST(Gzip, StopsAtTheLimitWhateverTheFileClaims) {
  const std::string packed = gzipped(std::string(1000000, 'x'));
  EXPECT_TRUE(has(refusal(packed, 999999), "more than 999999 bytes"));
  std::string humble = packed;
  humble.replace(humble.size() - 4, 4, std::string(4, '\0'));
  EXPECT_NE(refusal(humble, 10), "");
  std::string boastful = gzipped("x");
  boastful.replace(boastful.size() - 4, 4, std::string(4, '\xff'));
  EXPECT_TRUE(has(refusal(boastful, std::uint64_t{1} << 40), "damaged"));
}

}  // namespace
}  // namespace polyattn::data::gzip_test
