// metrics.jsonl, and its damage.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <limits>

#include "support.h"
#include "support/records.h"
#include "train/run/records.h"

namespace polyattn::run {
namespace metrics_test {

using polyattn::test::records_in;
using test::message_of;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

base::Json record(std::int64_t step, double loss) {
  return {{"kind", "train"}, {"step", step}, {"loss", base::number(loss)}};
}

TEST(MetricsNumber, GoesThereAndBack) {
  for (const double value : {0.0, -1.5, 0.1 + 0.2, 1e308, 5e-324}) {
    EXPECT_EQ(base::number_of(base::Json::parse(base::number(value).dump())),
              value);
  }
  EXPECT_EQ(base::number(kInfinity).dump(), "\"inf\"");
  EXPECT_EQ(base::number(-kInfinity).dump(), "\"-inf\"");
  EXPECT_EQ(base::number(std::nan("")).dump(), "\"nan\"");
  EXPECT_EQ(base::number_of("inf"), kInfinity);
  EXPECT_EQ(base::number_of("-inf"), -kInfinity);
  EXPECT_TRUE(std::isnan(base::number_of("nan")));
  EXPECT_EQ(base::number_of(3), 3.0);
}

TEST(MetricsNumber, RefusesOthers) {
  for (const base::Json& bad :
       {base::Json("NaN"), base::Json(""), base::Json(), base::Json(true),
        base::Json::array({1}), base::Json("1")}) {
    EXPECT_THROW(base::number_of(bad), base::JsonError) << bad;
  }
  EXPECT_EQ(message_of<base::JsonError>([] { base::number_of("one"); }),
            "\"one\" is not a number");
}

TEST(MetricsWriter, WritesALineARecord) {
  const TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  MetricsWriter writer(path, 0);
  EXPECT_EQ(writer.bytes(), 0);
  writer.write(record(1, 0.5));
  EXPECT_EQ(read_text(path), "{\"kind\":\"train\",\"step\":1,\"loss\":0.5}\n");
  writer.write(record(2, kInfinity));
  writer.sync();
  EXPECT_EQ(writer.bytes(), static_cast<std::int64_t>(read_text(path).size()));
  const auto records = records_in(path);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1], record(2, kInfinity));
}

// JSON has no word for them, and null would be lost on readers.
TEST(MetricsWriter, SpellsOutWhatIsNotFinite) {
  const TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  MetricsWriter writer(path, 0);
  writer.write({{"kind", "norms"},
                {"step", 1},
                {"norm", {{1.5, kInfinity}, {std::nan(""), -kInfinity}}}});
  EXPECT_EQ(read_text(path),
            "{\"kind\":\"norms\",\"step\":1,"
            "\"norm\":[[1.5,\"inf\"],[\"nan\",\"-inf\"]]}\n");
}

TEST(MetricsWriter, GoesOnWhereItIsTold) {
  const TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  std::int64_t kept = 0;
  {
    MetricsWriter writer(path, 0);
    writer.write(record(1, 1));
    kept = writer.bytes();
    writer.write(record(2, 2));
  }
  {
    MetricsWriter writer(path, kept);
    EXPECT_EQ(writer.bytes(), kept);
    writer.write(record(3, 3));
  }
  const auto records = records_in(path);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1], record(3, 3));
  const MetricsWriter fresh(path, 0);
  EXPECT_EQ(read_text(path), "");
}

TEST(MetricsWriter, RefusesAFileThatIsNotTheRightOne) {
  const TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  write_text(path, "abc\ndef\n");
  EXPECT_EQ(message_of<RecordError>([&] { MetricsWriter(path, 9); }),
            "[metrics] cannot write " + path.string() +
                ": it has 8 bytes, of which 9 were to be kept: it is not the "
                "file that belongs to the checkpoint");
  EXPECT_EQ(message_of<RecordError>([&] { MetricsWriter(path, 5); }),
            "[metrics] cannot write " + path.string() +
                ": no line ends after 5 bytes: it is not the file that belongs "
                "to the checkpoint");
  EXPECT_THROW(MetricsWriter(path, -1), RecordError);
  EXPECT_EQ(read_text(path), "abc\ndef\n");
  EXPECT_EQ(message_of<RecordError>(
                [&] { MetricsWriter(folder / "no" / "m.jsonl", 0); }),
            "[metrics] cannot write " + (folder / "no" / "m.jsonl").string() +
                ": No such file or directory");
}

TEST(MetricsWriter, RefusesWhatCouldNotBeRead) {
  const TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  MetricsWriter writer(path, 0);
  for (const base::Json& bad :
       {base::Json(3), base::Json::object(), base::Json{{"kind", "train"}},
        base::Json{{"kind", 1}, {"step", 1}},
        base::Json{{"kind", "train"}, {"step", 1.0}},
        base::Json{{"kind", "train"}, {"step", -1}}}) {
    EXPECT_THROW(writer.write(bad), RecordError) << bad;
  }
  EXPECT_EQ(read_text(path), "");
}

TEST(MetricsWriter, AFullDiskLeavesNoTornLine) {
  const TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  MetricsWriter writer(path, 0);
  writer.write(record(1, 1));
  const std::string before = read_text(path);
  // Beyond this size every write fails, after what still fits.
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit limit = old;
  limit.rlim_cur = before.size() + 10;
  ::setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_THROW(writer.write(record(2, 2)), RecordError);
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_text(path), before);
  writer.write(record(2, 2));
  EXPECT_EQ(records_in(path).size(), 2U);
}

TEST(EvaluationRecord, ReadsBackTheSame) {
  const Evaluation solution = {.loss = 1e-5,
                               .relative_l1 = 0.02,
                               .relative_l2 = 0.03,
                               .terms = {{"boundary", 1e-6}, {"start", 2e-6}}};
  for (const Evaluation& evaluation :
       {Evaluation{.loss = 1, .accuracy = 0.5}, solution}) {
    EXPECT_EQ(evaluation_of(evaluation_json(evaluation)), evaluation);
  }
  EXPECT_EQ(evaluation_json({.loss = 1, .accuracy = 0.5}).size(), 2U);
  Evaluation wild = solution;
  wild.terms["start"] = HUGE_VAL;
  EXPECT_EQ(evaluation_of(evaluation_json(wild)), wild);
  base::Json bad = evaluation_json(solution);
  bad["terms"] = 3;
  EXPECT_THROW(evaluation_of(bad), base::JsonError);
  bad["terms"] = {{"start", base::Json::array()}};
  EXPECT_THROW(evaluation_of(bad), base::JsonError);
}

}  // namespace metrics_test
}  // namespace polyattn::run
