// Documents in pages.
#include "report/page.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "report/text.h"
#include "support.h"

namespace polyattn::report {
namespace page_test {

using test::finished_run;
using test::message_of;
using test::read_text;
using test::TemporaryFolder;
using test::write_small_run;

const std::string kStart =
    "<!doctype html><script type=\"application/json\" id=\"polyattn-report\">";
const std::string kEnd = "</script><p>\xC3\xA9";

std::string stub() { return kStart + std::string(kPlaceholder) + kEnd; }

TEST(ScriptSafe, EscapesWhatCouldEndTheElement) {
  EXPECT_EQ(script_safe(R"({"a":"</script><!--"})"),
            R"({"a":"\u003c/script>\u003c!--"})");
  EXPECT_EQ(script_safe("\"\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xA6\xE2\x80\""),
            "\"\\u2028\\u2029\xE2\x80\xA6\xE2\x80\"");
  EXPECT_EQ(script_safe("\xE2\x80"), "\xE2\x80");
  EXPECT_EQ(script_safe(""), "");
}

TEST(Printable, LeavesNothingThatATerminalHeeds) {
  EXPECT_EQ(printable("a\n\033[31m\x7F\xC2\x9B\xC3\xA9\xC2\xA0\xFF"),
            "a??[31m???\xC3\xA9\xC2\xA0\xEF\xBF\xBD");
}

TEST(FillPage, PutsTheDocumentInItsPlace) {
  EXPECT_EQ(fill_page(stub(), R"({"a":"<"})"),
            kStart + R"({"a":"\u003c"})" + kEnd);
  // Text of the document is not looked at again.
  EXPECT_EQ(fill_page(stub(), kPlaceholder), stub());
}

TEST(FillPage, RefusesAPageWithoutItsPlace) {
  EXPECT_NE(message_of<std::runtime_error>([] {
              fill_page("<html>", "{}");
            }).find("nowhere"),
            std::string::npos);
  EXPECT_NE(message_of<std::runtime_error>([] {
              fill_page(stub() + stub(), "{}");
            }).find("more than once"),
            std::string::npos);
}

TEST(WriteReport, WritesThePage) {
  const TemporaryFolder folder;
  write_small_run(folder / "c/a", finished_run("</script>", 1, 0.5));
  write_small_run(folder / "c/b", finished_run("x", 1, 0.5));
  folder.write("c/d/run.json", "{");
  const auto out = folder / "report.html";
  const Written written = write_report({folder / "c"}, out, {}, stub());
  EXPECT_EQ(written.runs, 2U);
  EXPECT_EQ(written.warnings.size(), 1U);
  const std::string page = read_text(out);
  EXPECT_EQ(written.bytes, page.size());
  EXPECT_EQ(page.rfind(kStart, 0), 0U);
  // The first end of an element after the start is that of the page.
  const std::size_t end = page.find("</", kStart.size());
  EXPECT_EQ(page.substr(end), kEnd);
  const base::Json json =
      base::parse_json(page.substr(kStart.size(), end - kStart.size()));
  EXPECT_EQ(json["runs"].size(), 2U);
  EXPECT_EQ(json["runs"][0]["activation"], "</script>");
}

TEST(WriteReport, ThePageCountsToo) {
  const TemporaryFolder folder;
  std::string metrics;
  for (int i = 1; i <= 4000; ++i) metrics += test::train_line(i, 1.0 / i);
  for (const char* name : {"a", "b", "c"}) {
    test::write_run(folder / "c" / name, finished_run("x", 1, 0.5), metrics);
  }
  const std::string large = stub() + std::string(kMaxPageBytes - 100'000, ' ');
  const Written written =
      write_report({folder / "c"}, folder / "report.html", {}, large);
  EXPECT_LE(written.bytes, kMaxPageBytes);
}

TEST(WriteReport, WithoutAPageOrRunsNothingIsWritten) {
  const TemporaryFolder folder;
  const auto out = folder / "report.html";
  write_small_run(folder / "a", finished_run("x", 1, 0.5));
  EXPECT_NE(message_of<std::runtime_error>([&] {
              write_report({folder / "a"}, out, {}, "");
            }).find("POLYATTN_PAGE=ON"),
            std::string::npos);
  std::filesystem::create_directory(folder / "empty");
  EXPECT_NE(message_of<std::runtime_error>(
                [&] { write_report({folder / "empty"}, out, {}, stub()); }),
            "");
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace page_test
}  // namespace polyattn::report
