#include "report/metrics_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/message.h"
#include "train/run/records.h"

namespace polyattn::report {
namespace {

// Some ten times the longest run that we can think of.
constexpr std::int64_t kMaxMetricsBytes = std::int64_t{1} << 28;
// A record of the norms of a thousand heads has a hundredth of this.
constexpr std::size_t kMaxLine = 1 << 22;
// A file with more is no file of metrics. Each costs as much as many good ones.
constexpr std::int64_t kMaxDamaged = 1000;
constexpr std::size_t kTailBytes = 64;
constexpr std::size_t kMetricsPiece = 1 << 18;

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path, std::filesystem::path root)
    : path_(std::move(path)), root_(std::move(root)) {}

void MetricsFile::restart() {
  *this = MetricsFile(std::move(path_), std::move(root_));
}

// A file that was cut and has grown again has other bytes where we stopped.
bool MetricsFile::continues(int file, const FileState& now) const {
  if (now.number != state_.number || now.size < offset_) return false;
  std::string bytes(tail_.size(), '\0');
  const auto start = offset_ - static_cast<std::int64_t>(tail_.size());
  return ::pread(file, bytes.data(), bytes.size(), start) ==
             static_cast<ssize_t>(bytes.size()) &&
         bytes == tail_;
}

bool MetricsFile::refresh(const std::stop_token& stop) {
  const FileState now = file_state(path_);
  if (now == state_) return false;
  const bool had_any = state_.exists();
  try {
    const base::FileDescriptor file = open_file(path_, root_);
    const bool replaced = had_any && !continues(file.get(), now);
    if (replaced) restart();
    unreadable_.clear();
    const std::int64_t before = offset_;
    if (read_on(file.get(), stop)) state_ = now;
    return replaced || offset_ != before;
  } catch (const std::runtime_error& error) {
    const bool changed = had_any || unreadable_ != error.what();
    restart();
    unreadable_ = error.what();
    state_ = now;
    return changed;
  }
}

// False if it was stopped before the end.
bool MetricsFile::read_on(int file, const std::stop_token& stop) {
  std::string bytes;
  while (!stop.stop_requested()) {
    if (offset_ > kMaxMetricsBytes) {
      unreadable_ =
          fmt::format("{} has more than {} bytes: the rest is left out",
                      path_.string(), kMaxMetricsBytes);
      return true;
    }
    if (damaged_ > kMaxDamaged) {
      unreadable_ = fmt::format(
          "{}: more than {} lines are damaged: the rest is left out ({})",
          path_.string(), kMaxDamaged, base::shortened(first_damage_));
      return true;
    }
    const std::size_t had = bytes.size();
    bytes.resize(had + kMetricsPiece);
    const ssize_t got = ::pread(file, bytes.data() + had, kMetricsPiece,
                                offset_ + static_cast<std::int64_t>(had));
    bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw std::runtime_error(fmt::format("cannot read {}: {}", path_.string(),
                                           std::strerror(errno)));
    }
    if (got == 0) return true;
    const std::size_t end = bytes.rfind('\n');
    if (end != std::string::npos) {
      const std::string_view lines = bytes;
      take(lines.substr(0, end + 1));
      bytes.erase(0, end + 1);
    }
    if (bytes.size() > kMaxLine) {
      if (!skipping_) damaged("it is too long");
      skipping_ = true;
      offset_ += static_cast<std::int64_t>(bytes.size());
      tail_ = bytes.substr(bytes.size() - kTailBytes);
      bytes.clear();
    }
  }
  return false;
}

// Whole lines.
void MetricsFile::take(std::string_view bytes) {
  offset_ += static_cast<std::int64_t>(bytes.size());
  tail_ = bytes.substr(bytes.size() - std::min(bytes.size(), kTailBytes));
  while (!bytes.empty() && damaged_ <= kMaxDamaged) {
    const std::size_t end = bytes.find('\n');
    // The start of a line that is too long was counted when it was met.
    if (!std::exchange(skipping_, false)) take_line(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
}

void MetricsFile::take_line(std::string_view line) {
  try {
    series_.add(line);
    ++lines_;
  } catch (const base::JsonError& error) {
    damaged(error.what());
  }
}

void MetricsFile::damaged(const std::string& why) {
  ++lines_;
  if (damaged_++ == 0) first_damage_ = fmt::format("line {}: {}", lines_, why);
}

std::string MetricsFile::warning() const {
  if (!unreadable_.empty()) return unreadable_;
  if (damaged_ == 0) return "";
  return fmt::format("{}: {} of {} lines are damaged and left out ({})",
                     path_.string(), damaged_, lines_,
                     base::shortened(first_damage_));
}

}  // namespace polyattn::report
