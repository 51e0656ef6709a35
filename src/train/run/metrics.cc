// metrics.jsonl, written line by line.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/json_text.h"
#include "base/message.h"
#include "train/run/records.h"

namespace polyattn::run {
namespace {

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

// Absent where the loss has one.
std::map<std::string, double> terms_of(const base::Json& evaluation) {
  std::map<std::string, double> terms;
  const auto found = evaluation.find("terms");
  if (found == evaluation.end()) return terms;
  if (!found->is_object()) throw base::JsonError("\"terms\" is no object");
  for (const auto& [name, value] : found->items()) {
    terms[name] = base::number_of(value);
  }
  return terms;
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
  if (!base::write_all(file_, line).empty()) {
    const std::string why = system_message();
    // What is there of the line would spoil those that come after it.
    if (::ftruncate(file_, bytes_) != 0) refuse(path_, why + ", torn line");
    refuse(path_, why);
  }
  bytes_ += static_cast<std::int64_t>(line.size());
}

void MetricsWriter::sync() {
  // EINVAL: a file system without this notion.
  if (::fdatasync(file_) != 0 && errno != EINVAL) {
    refuse(path_, system_message());
  }
}

base::Json evaluation_json(const Evaluation& evaluation) {
  base::Json json = {{"loss", base::number(evaluation.loss)}};
  if (evaluation.accuracy)
    json["accuracy"] = base::number(*evaluation.accuracy);
  if (evaluation.bits_per_byte) {
    json["bits_per_byte"] = base::number(*evaluation.bits_per_byte);
  }
  if (evaluation.relative_l1)
    json["relative_l1"] = base::number(*evaluation.relative_l1);
  if (evaluation.relative_l2)
    json["relative_l2"] = base::number(*evaluation.relative_l2);
  for (const auto& [name, value] : evaluation.terms) {
    json["terms"][name] = base::number(value);
  }
  return json;
}

Evaluation evaluation_of(const base::Json& json) {
  const auto figure = [&](const char* key) -> std::optional<double> {
    if (!json.contains(key)) return std::nullopt;
    return base::number_of(json[key]);
  };
  return {.loss = base::number_of(json.at("loss")),
          .accuracy = figure("accuracy"),
          .bits_per_byte = figure("bits_per_byte"),
          .relative_l1 = figure("relative_l1"),
          .relative_l2 = figure("relative_l2"),
          .terms = terms_of(json)};
}

}  // namespace polyattn::run
