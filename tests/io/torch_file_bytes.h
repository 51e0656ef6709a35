// Files of torch.save made by hand, for tests: archives and pickles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "polyattn/io/torch_file.h"
#include "support/message_of.h"

namespace polyattn::io::test {

// Little-endian, of `size` bytes.
inline std::string number(std::uint64_t value, std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size && value > 0; ++i, value >>= 8) {
    text[i] = static_cast<char>(value & 0xff);
  }
  return text;
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

using Members = std::vector<std::pair<std::string, std::string>>;

// What an archive may say that is not so.
struct ZipChanges {
  std::uint64_t flags = 0, method = 0;
  std::int64_t offset = 0;  // added to that of the last member
  std::int64_t size = 0;    // added to that of the last member
  bool zip64 = false;       // all numbers in their fields of 64 bits
  std::string comment = {};
};

inline std::string zip_of(const Members& members, const ZipChanges& c = {}) {
  std::string file, directory;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& [name, content] = members[i];
    const bool last = i + 1 == members.size();
    const std::uint64_t size =
        content.size() + static_cast<std::uint64_t>(last ? c.size : 0);
    const std::uint64_t offset =
        file.size() + static_cast<std::uint64_t>(last ? c.offset : 0);
    const std::string padding = "\x46\x42\x02" + std::string("\0ab", 3);
    file += "PK\3\4" + number(0, 2) + number(c.flags, 2) + number(c.method, 2) +
            number(0, 8) + number(content.size(), 4) +
            number(content.size(), 4) + number(name.size(), 2) +
            number(padding.size(), 2) + name + padding + content;
    const std::uint64_t no = 0xffffffff;
    const std::string extra =
        c.zip64
            ? number(7, 2) + number(1, 2) + "x" + number(1, 2) + number(24, 2) +
                  number(size, 8) + number(size, 8) + number(offset, 8)
            : "";
    directory += "PK\1\2" + number(0, 4) + number(c.flags, 2) +
                 number(c.method, 2) + number(0, 8) +
                 number(c.zip64 ? no : size, 4) +
                 number(c.zip64 ? no : size, 4) + number(name.size(), 2) +
                 number(extra.size(), 2) + number(3, 2) + number(0, 8) +
                 number(c.zip64 ? no : offset, 4) + name + extra + "abc";
  }
  const std::uint64_t begin = file.size();
  file += directory;
  if (c.zip64) {
    const std::uint64_t end = file.size();
    file += "PK\6\6" + number(44, 8) + number(0, 12) +
            number(members.size(), 8) + number(members.size(), 8) +
            number(directory.size(), 8) + number(begin, 8);
    file += "PK\6\7" + number(0, 4) + number(end, 8) + number(1, 4);
  }
  const std::uint64_t count = c.zip64 ? 0xffff : members.size();
  file += "PK\5\6" + number(0, 4) + number(count, 2) + number(count, 2) +
          number(c.zip64 ? 0xffffffff : directory.size(), 4) +
          number(c.zip64 ? 0xffffffff : begin, 4) +
          number(c.comment.size(), 2) + c.comment;
  return file;
}

// Opcodes of a pickle.
inline std::string text_op(std::string_view text) {
  return "X" + number(text.size(), 4).append(text);
}

inline std::string integer_op(std::int64_t value) {
  return "\x8a\x08" + number(static_cast<std::uint64_t>(value), 8);
}

inline std::string global_op(std::string_view module, std::string_view name) {
  return std::string("c").append(module).append("\n").append(name).append("\n");
}

inline std::string tuple_op(const std::vector<std::int64_t>& numbers) {
  std::string ops = "(";
  for (const std::int64_t value : numbers) ops += integer_op(value);
  return ops + "t";
}

inline std::string storage_op(std::string_view type, std::string_view key,
                              std::int64_t count) {
  return "(" + text_op("storage") + global_op("torch", type) + text_op(key) +
         text_op("cpu") + integer_op(count) + "tQ";
}

struct TensorOps {
  std::string type = "FloatStorage";
  std::string key = "0";
  std::int64_t count = 6;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape = {2, 3};
  std::vector<std::int64_t> strides = {3, 1};
};

inline std::string tensor_op(const TensorOps& t = {}) {
  return global_op("torch._utils", "_rebuild_tensor_v2") + "(" +
         storage_op(t.type, t.key, t.count) + integer_op(t.offset) +
         tuple_op(t.shape) + tuple_op(t.strides) + "\x89" +
         global_op("collections", "OrderedDict") + ")RtR";
}

inline std::string pickle_of(std::string_view ops) {
  return std::string("\x80\x02").append(ops).append(".");
}

// {name: value}, both as opcodes.
inline std::string dict_op(
    const std::vector<std::pair<std::string, std::string>>& items) {
  std::string ops = "}(";
  for (const auto& [name, value] : items) ops += text_op(name) + value;
  return ops + "u";
}

// A whole file: the pickle, and a storage `0` of 24 bytes.
inline std::string torch_file_of(std::string_view ops) {
  return zip_of({{"a/data.pkl", pickle_of(ops)},
                 {"a/data/0", std::string(24, '\1')},
                 {"a/version", "3\n"}});
}

// The message that parsing this file ends with; empty if it is accepted.
inline std::string torch_refusal(std::string_view file) {
  return polyattn::test::message_of<TorchFileError>(
      [&] { TorchFile::parse(bytes_of(file), "x"); });
}

}  // namespace polyattn::io::test
