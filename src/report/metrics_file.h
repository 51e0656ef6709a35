// metrics.jsonl of a run that may still be going on: each look reads only what
// has been added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>

#include "report/files.h"
#include "report/series.h"

namespace polyattn::report {

class MetricsFile {
 public:
  // `root` as open_file() takes it.
  MetricsFile(std::filesystem::path path, std::filesystem::path root);

  // True if there was anything new. Starts over if the file was cut or
  // replaced, as resuming does. A last line without end is being written: it is
  // left for the next time. Lines that are no records are left out, and so is
  // all that follows the thousandth of them; warning() tells. Ends early if it
  // is asked to.
  bool refresh(const std::stop_token& stop = {});

  const RunSeries& series() const { return series_; }

  // What is wrong with the file, in a sentence; empty if nothing is.
  std::string warning() const;

 private:
  void restart();
  bool continues(int file, const FileState& now) const;
  bool read_on(int file, const std::stop_token& stop);
  void take(std::string_view bytes);
  void take_line(std::string_view line);
  void damaged(const std::string& why);

  std::filesystem::path path_;
  std::filesystem::path root_;
  FileState state_;
  RunSeries series_;
  std::int64_t offset_ = 0;  // of the first byte that was not taken
  std::string tail_;         // the last bytes before it
  bool skipping_ = false;    // within a line that is too long
  std::int64_t lines_ = 0;
  std::int64_t damaged_ = 0;
  std::string first_damage_;
  std::string unreadable_;
};

}  // namespace polyattn::report
