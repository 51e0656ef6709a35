// metrics.jsonl: written line by line, read whole.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/json_text.h"
#include "base/message.h"
#include "base/text_file.h"
#include "train/run/records.h"

namespace polyattn::run {
namespace {

// Some ten times the longest run that we can think of. As JSON in memory it is
// many times as large.
constexpr std::size_t kMaxMetricsBytes = std::size_t{1} << 28;

[[noreturn]] void refuse(const std::filesystem::path& path,
                         std::string_view why) {
  throw RecordError(
      fmt::format("[metrics] cannot write {}: {}", path.string(), why));
}

std::string system_message() { return std::strerror(errno); }

// A file that is cut anywhere else would hold a torn line in its middle.
bool ends_a_line(int file, std::int64_t bytes) {
  char last = '\0';
  return bytes == 0 ||
         (::pread(file, &last, 1, bytes - 1) == 1 && last == '\n');
}

// Why the record would not be read again; empty if it would.
std::string flaw_of(const base::Json& record) {
  if (!record.is_object()) return "it is no JSON object";
  const auto kind = record.find("kind");
  if (kind == record.end()) return "\"kind\" is missing";
  if (!kind->is_string()) return "\"kind\" is no string";
  const auto step = record.find("step");
  if (step == record.end()) return "\"step\" is missing";
  if (!step->is_number_integer()) return "\"step\" is no integer";
  if (step->is_number_unsigned() ? step->get<std::uint64_t>() >
                                       std::numeric_limits<std::int64_t>::max()
                                 : step->get<std::int64_t>() < 0) {
    return fmt::format("\"step\" {} is out of range", step->dump());
  }
  return "";
}

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& path,
                             std::int64_t keep_bytes)
    : path_(path),
      file_(
          ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)),
      bytes_(keep_bytes) {
  if (file_ < 0) refuse(path_, system_message());
  std::string flaw;
  struct stat status {};
  if (::fstat(file_, &status) != 0) {
    flaw = system_message();
  } else if (keep_bytes < 0 || status.st_size < keep_bytes) {
    flaw = fmt::format(
        "it has {} bytes, of which {} were to be kept: it is not the file that "
        "belongs to the checkpoint",
        static_cast<std::int64_t>(status.st_size), keep_bytes);
  } else if (!ends_a_line(file_, keep_bytes)) {
    flaw = fmt::format(
        "no line ends after {} bytes: it is not the file that belongs to the "
        "checkpoint",
        keep_bytes);
  } else if (::ftruncate(file_, keep_bytes) != 0) {
    flaw = system_message();
  }
  if (flaw.empty()) return;
  ::close(file_);
  refuse(path_, flaw);
}

MetricsWriter::~MetricsWriter() { ::close(file_); }

void MetricsWriter::write(const base::Json& record) {
  const std::string flaw = flaw_of(record);
  if (!flaw.empty()) refuse(path_, "a record that is wrong: " + flaw);
  const std::string line = base::json_line(record);
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t written =
        ::write(file_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const std::string why = system_message();
      // What is there of the line would spoil those that come after it.
      if (::ftruncate(file_, bytes_) != 0) refuse(path_, why + ", torn line");
      refuse(path_, why);
    }
    done += static_cast<std::size_t>(written);
  }
  bytes_ += static_cast<std::int64_t>(line.size());
}

void MetricsWriter::sync() {
  // EINVAL: a file system without this notion.
  if (::fdatasync(file_) != 0 && errno != EINVAL) {
    refuse(path_, system_message());
  }
}

std::vector<base::Json> read_metrics(const std::filesystem::path& path) {
  std::string text;
  try {
    text = base::read_text_file(path, kMaxMetricsBytes);
  } catch (const std::runtime_error& error) {
    throw RecordError(fmt::format("[metrics] {}", error.what()));
  }
  std::vector<base::Json> records;
  std::string_view rest = text;
  // The writer may have been killed within the last line.
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos;
       end = rest.find('\n')) {
    std::string flaw;
    try {
      records.push_back(base::parse_json(rest.substr(0, end)));
      flaw = flaw_of(records.back());
    } catch (const base::JsonError& error) {
      flaw = error.what();
      records.emplace_back();
    }
    if (!flaw.empty()) {
      throw RecordError(fmt::format("[metrics] {}:{}: {}", path.string(),
                                    records.size(), flaw));
    }
    rest.remove_prefix(end + 1);
  }
  return records;
}

}  // namespace polyattn::run
