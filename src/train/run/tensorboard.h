// Event files that TensorBoard shows: scalars alone.
//
// A file is a list of records (TFRecord),
//   length (8 bytes, little-endian), checksum of the length (4),
//   data, checksum of the data (4)
// with the masked CRC-32C as checksum and an Event of TensorFlow's protocol
// buffers as data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/json_text.h"

namespace polyattn::run {

// Every function but the destructor throws RecordError.
class EventWriter {
 public:
  // Begins a file of its own in `folder`, which is made if it is not there:
  //   events.out.tfevents.<seconds>.<host>.<process>.v2
  // A run that goes on after `step` finished steps thus has several files.
  // TensorBoard reads them in the order of their names, and the new one comes
  // last even if the clock went back. It opens with a SessionLog START of the
  // step that comes next, at which TensorBoard forgets what older files have
  // from that step on. (Its newer loader does so whenever a step is not above
  // the one before.) So no step is shown twice.
  explicit EventWriter(const std::filesystem::path& folder,
                       std::int64_t step = 0);
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;
  // Writes what is left, if it can.
  ~EventWriter();

  // `wall_time` in seconds since 1970. TensorBoard has floats: the value is
  // rounded to one.
  void scalar(std::string_view tag, std::int64_t step, double wall_time,
              double value);

  // The numbers of a record of metrics.jsonl, as KIND/KEY. A list has one
  // number for each layer, and in it one for each head:
  // norms/weight_max/layer0/head1.
  void record(const base::Json& record);

  // Hands all scalars to the system.
  void flush();

  const std::filesystem::path& path() const { return path_; }

 private:
  void open(const std::filesystem::path& folder, std::int64_t seconds);

  std::filesystem::path path_;
  base::FileDescriptor file_;
  std::string buffer_;
};

}  // namespace polyattn::run
