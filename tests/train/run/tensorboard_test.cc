// Event files, read back by a decoder of the test's own.
#include "train/run/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "base/crc32c.h"
#include "support.h"
#include "train/run/records.h"

namespace polyattn::run {
namespace tensorboard_test {

using test::TemporaryFolder;

// Bit by bit from the polynomial as it is printed, 0x1EDC6F41, where the
// implementation has a table of the mirrored one.
std::uint32_t plain_crc32c(std::string_view bytes) {
  const auto mirrored = [](std::uint32_t value) {
    std::uint32_t result = 0;
    for (int i = 0; i < 32; ++i) result |= (value >> i & 1) << (31 - i);
    return result;
  };
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= mirrored(static_cast<unsigned char>(c));
    for (int i = 0; i < 8; ++i) {
      crc = (crc << 1) ^ (crc >> 31 != 0 ? 0x1edc6f41u : 0u);
    }
  }
  return ~mirrored(crc);
}

TEST(Crc32c, HasKnownValues) {
  static_assert(base::crc32c("123456789") == 0xe3069283);
  // RFC 3720, B.4.
  EXPECT_EQ(base::crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(base::crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising, falling;
  for (char c = 0; c < 32; ++c) {
    rising += c;
    falling += static_cast<char>(31 - c);
  }
  EXPECT_EQ(base::crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(base::crc32c(falling), 0x113fdb5cu);
  EXPECT_EQ(base::crc32c(""), 0u);
  EXPECT_EQ(plain_crc32c("123456789"), 0xe3069283u);
}

// Takes what it reads off the front.
class Input {
 public:
  explicit Input(std::string bytes) : bytes_(std::move(bytes)) {}

  bool empty() const { return at_ == bytes_.size(); }

  std::string take(std::size_t count) {
    if (bytes_.size() - at_ < count) throw std::runtime_error("cut off");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }

  template <typename Number>
  Number fixed() {
    const std::string bytes = take(sizeof(Number));
    Number number{};
    std::memcpy(&number, bytes.data(), sizeof(Number));
    return number;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

struct Event {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string version;
  std::uint64_t session_status = 0;
  std::string tag;
  float value = 0;
};

void read_value(Input message, Event& event) {
  while (!message.empty()) {
    switch (message.varint()) {
      case 1 << 3 | 2:
        event.tag = message.take(message.varint());
        break;
      case 2 << 3 | 5:
        event.value = message.fixed<float>();
        break;
      default:
        throw std::runtime_error("unknown field of a value");
    }
  }
}

Event read_event(Input message) {
  Event event;
  while (!message.empty()) {
    switch (message.varint()) {
      case 1 << 3 | 1:
        event.wall_time = message.fixed<double>();
        break;
      case 2 << 3 | 0:
        event.step = static_cast<std::int64_t>(message.varint());
        break;
      case 3 << 3 | 2:
        event.version = message.take(message.varint());
        break;
      case 5 << 3 | 2: {
        Input summary(message.take(message.varint()));
        EXPECT_EQ(summary.varint(), 1u << 3 | 2u);
        read_value(Input(summary.take(summary.varint())), event);
        EXPECT_TRUE(summary.empty());
        break;
      }
      case 7 << 3 | 2: {
        Input log(message.take(message.varint()));
        EXPECT_EQ(log.varint(), 1u << 3);
        event.session_status = log.varint();
        EXPECT_TRUE(log.empty());
        break;
      }
      default:
        throw std::runtime_error("unknown field of an event");
    }
  }
  return event;
}

std::uint32_t masked(std::uint32_t crc) {
  return std::rotr(crc, 15) + 0xa282ead8u;
}

std::vector<Event> read_events(const std::filesystem::path& path) {
  Input file(test::read_text(path));
  std::vector<Event> events;
  while (!file.empty()) {
    const std::string length_bytes = file.take(8);
    EXPECT_EQ(file.fixed<std::uint32_t>(), masked(plain_crc32c(length_bytes)));
    const std::string data =
        file.take(Input(length_bytes).fixed<std::uint64_t>());
    EXPECT_EQ(file.fixed<std::uint32_t>(), masked(plain_crc32c(data)));
    events.push_back(read_event(Input(data)));
  }
  return events;
}

TEST(EventWriter, BeginsWithVersionAndStart) {
  const TemporaryFolder folder;
  const EventWriter writer(folder / "tensorboard");
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.7e9);
  EXPECT_EQ(events[1].session_status, 1U);
  EXPECT_EQ(events[1].step, 1);
}

TEST(EventWriter, WritesScalars) {
  const TemporaryFolder folder;
  EventWriter writer(folder.path());
  writer.scalar("train/loss", 20, 1234.5, 0.1);
  const std::string long_tag(300, 't');
  writer.scalar(long_tag, std::int64_t{1} << 40, 1e10,
                std::numeric_limits<double>::infinity());
  writer.scalar("", 0, 0, std::nan(""));
  EXPECT_EQ(read_events(writer.path()).size(), 2U);
  writer.flush();
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[2].tag, "train/loss");
  EXPECT_EQ(events[2].step, 20);
  EXPECT_EQ(events[2].wall_time, 1234.5);
  EXPECT_EQ(events[2].value, 0.1f);
  EXPECT_EQ(events[3].tag, long_tag);
  EXPECT_EQ(events[3].step, std::int64_t{1} << 40);
  EXPECT_TRUE(std::isinf(events[3].value));
  EXPECT_TRUE(std::isnan(events[4].value));
}

TEST(EventWriter, WritesMuchAndTheRestAtTheEnd) {
  const TemporaryFolder folder;
  std::filesystem::path path;
  {
    EventWriter writer(folder.path());
    for (int i = 0; i < 5000; ++i) writer.scalar("loss", i, i, i);
    path = writer.path();
    // Not all of it waits for the end.
    EXPECT_GT(std::filesystem::file_size(path), 100000U);
  }
  const auto events = read_events(path);
  ASSERT_EQ(events.size(), 5002U);
  for (int i = 0; i < 5000; ++i) {
    const auto& event = events[static_cast<std::size_t>(i) + 2];
    EXPECT_EQ(event.step, i);
    EXPECT_EQ(event.value, static_cast<float>(i));
  }
}

// What TensorBoard does: files in the order of their names, and at START all
// older events from that step on are forgotten.
std::multimap<std::int64_t, float> shown(const TemporaryFolder& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::multimap<std::int64_t, float> points;
  for (const auto& file : files) {
    for (const Event& event : read_events(file)) {
      if (event.session_status == 1) {
        points.erase(points.lower_bound(event.step), points.end());
      } else if (!event.tag.empty()) {
        points.emplace(event.step, event.value);
      }
    }
  }
  return points;
}

TEST(EventWriter, AResumedRunShowsNoStepTwice) {
  const TemporaryFolder folder;
  {
    EventWriter writer(folder.path());
    for (int step = 1; step <= 5; ++step) writer.scalar("loss", step, 0, 1);
  }
  {
    EventWriter writer(folder.path(), 3);
    for (int step = 4; step <= 6; ++step) writer.scalar("loss", step, 0, 2);
  }
  EXPECT_EQ(shown(folder),
            (std::multimap<std::int64_t, float>{
                {1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {6, 2}}));
}

TEST(EventWriter, NamesRiseEvenIfTheClockDoesNot) {
  const TemporaryFolder folder;
  const std::string future = "events.out.tfevents.9000000000.a.1.v2";
  test::write_text(folder / future, "");
  test::write_text(folder / "events.out.tfevents.x", "");
  test::write_text(folder / "events.out.tfevents.99999999999999999999.a", "");
  const EventWriter one(folder.path());
  const EventWriter two(folder.path());
  const std::string first = one.path().filename().string();
  const std::string second = two.path().filename().string();
  EXPECT_EQ(first.find("events.out.tfevents.9000000001."), 0U) << first;
  EXPECT_EQ(second.find("events.out.tfevents.9000000002."), 0U) << second;
  EXPECT_TRUE(first.ends_with(std::to_string(::getpid()) + ".v2"));
  EXPECT_EQ(std::count(first.begin(), first.end(), '.'), 6);
}

TEST(EventWriter, ErrorsNameThePath) {
  const TemporaryFolder folder;
  test::write_text(folder / "file", "");
  EXPECT_EQ(test::message_of<RecordError>([&] { EventWriter(folder / "file"); })
                .find("[tensorboard] cannot write " +
                      (folder / "file").string() + ": "),
            0U);
}

}  // namespace tensorboard_test
}  // namespace polyattn::run
