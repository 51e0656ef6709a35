#include "train/run/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <system_error>

#include "base/crc32c.h"
#include "train/run/records.h"

namespace polyattn::run {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr std::size_t kBufferBytes = 1 << 16;

// Protocol buffers: a field is its number and its wire type, then the value.
constexpr unsigned kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

void add_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

void add_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void add_key(std::string& out, unsigned field, unsigned wire_type) {
  add_varint(out, field << 3 | wire_type);
}

void add_bytes(std::string& out, unsigned field, std::string_view bytes) {
  add_key(out, field, kBytes);
  add_varint(out, bytes.size());
  out += bytes;
}

// Event { double wall_time = 1; int64 step = 2; }, and one more field.
std::string event(double wall_time, std::int64_t step, unsigned field,
                  std::string_view content) {
  std::string out;
  add_key(out, 1, kFixed64);
  add_little_endian(out, std::bit_cast<std::uint64_t>(wall_time), 8);
  add_key(out, 2, kVarint);
  add_varint(out, static_cast<std::uint64_t>(step));
  add_bytes(out, field, content);
  return out;
}

constexpr unsigned kFileVersion = 3, kSummary = 5, kSessionLog = 7;

// SessionLog { enum status = 1 } with START = 1.
std::string session_start() {
  std::string out;
  add_key(out, 1, kVarint);
  add_varint(out, 1);
  return out;
}

// Summary { Value value = 1 }, Value { string tag = 1; float simple_value = 2
// }.
std::string summary(std::string_view tag, double value) {
  std::string inner;
  add_bytes(inner, 1, tag);
  add_key(inner, 2, kFixed32);
  add_little_endian(inner,
                    std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4);
  std::string out;
  add_bytes(out, 1, inner);
  return out;
}

std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = base::crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

void add_record(std::string& out, std::string_view data) {
  std::string length;
  add_little_endian(length, data.size(), 8);
  out += length;
  add_little_endian(out, masked_crc(length), 4);
  out += data;
  add_little_endian(out, masked_crc(data), 4);
}

double seconds_now() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  std::string host = name.data();
  std::replace_if(
      host.begin(), host.end(),
      [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-';
      },
      '-');
  return host.empty() ? "localhost" : host;
}

// The seconds in the name of an event file; -1 for other files.
std::int64_t seconds_of(const std::string& name) {
  std::int64_t seconds = -1;
  if (!name.starts_with(kPrefix)) return seconds;
  const char* const digits = name.data() + kPrefix.size();
  const auto [end, error] =
      std::from_chars(digits, name.data() + name.size(), seconds);
  // Names of our own have ten digits. A stranger's could not be counted on.
  const bool ours = error == std::errc() && end - digits == 10;
  return ours ? seconds : -1;
}

std::int64_t last_seconds(const fs::path& folder) {
  std::int64_t last = -1;
  for (const auto& entry : fs::directory_iterator(folder)) {
    last = std::max(last, seconds_of(entry.path().filename().string()));
  }
  return last;
}

[[noreturn]] void refuse_events(const fs::path& path, const std::string& why) {
  throw RecordError(
      fmt::format("[tensorboard] cannot write {}: {}", path.string(), why));
}

double wall_time() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void add_scalars(EventWriter& events, std::int64_t step, const std::string& tag,
                 const base::Json& value) {
  if (value.is_object()) {
    for (const auto& [name, part] : value.items()) {
      add_scalars(events, step, fmt::format("{}/{}", tag, name), part);
    }
    return;
  }
  if (!value.is_array()) {
    if (value.is_number() || value.is_string()) {
      events.scalar(tag, step, wall_time(), base::number_of(value));
    }
    return;
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    const bool in_layer = tag.find("/layer") != std::string::npos;
    add_scalars(events, step,
                fmt::format("{}/{}{}", tag, in_layer ? "head" : "layer", i),
                value[i]);
  }
}

}  // namespace

void EventWriter::open(const fs::path& folder, std::int64_t seconds) {
  // Another process may take the name first; it will not do so forever.
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    path_ = folder / fmt::format("{}{:010}.{}.{}.v2", kPrefix,
                                 seconds + attempt, host_name(), ::getpid());
    file_ = base::FileDescriptor(
        ::open(path_.c_str(),
               O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    if (file_.is_open()) return;
    if (errno != EEXIST) break;
  }
  refuse_events(path_, std::strerror(errno));
}

EventWriter::EventWriter(const fs::path& folder, std::int64_t step) {
  const double now = seconds_now();
  std::int64_t seconds = static_cast<std::int64_t>(now);
  try {
    fs::create_directories(folder);
    seconds = std::max(seconds, last_seconds(folder) + 1);
  } catch (const fs::filesystem_error& error) {
    refuse_events(folder, error.code().message());
  }
  open(folder, seconds);
  add_record(buffer_, event(now, 0, kFileVersion, "brain.Event:2"));
  add_record(buffer_, event(now, step + 1, kSessionLog, session_start()));
  flush();
}

EventWriter::~EventWriter() {
  try {
    flush();
  } catch (const base::JsonError&) {
    // The records themselves are in metrics.jsonl.
  }
}

void EventWriter::scalar(std::string_view tag, std::int64_t step,
                         double wall_time, double value) {
  add_record(buffer_, event(wall_time, step, kSummary, summary(tag, value)));
  if (buffer_.size() >= kBufferBytes) flush();
}

void EventWriter::record(const base::Json& record) {
  const auto kind = record.at("kind").get<std::string>();
  if (kind == "diverged") return;
  for (const auto& [key, value] : record.items()) {
    if (key == "kind" || key == "step") continue;
    add_scalars(*this, record.at("step").get<std::int64_t>(),
                fmt::format("{}/{}", kind, key), value);
  }
}

void EventWriter::flush() {
  const std::size_t rest = base::write_all(file_.get(), buffer_).size();
  if (rest > 0) {
    const std::string why = std::strerror(errno);
    buffer_.erase(0, buffer_.size() - rest);
    refuse_events(path_, why);
  }
  buffer_.clear();
}

}  // namespace polyattn::run
