// What is written: byte for byte, there and back, in any order of the input,
// and not at all where the reader would refuse it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "polyattn/io/safetensors.h"
#include "safetensors_bytes.h"

namespace polyattn::io::test {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";

TensorView tensor(const std::string& name, TensorType type,
                  const std::vector<std::int64_t>& shape,
                  std::size_t byte_count) {
  return {name, type, shape, as_bytes(kLetters.substr(0, byte_count))};
}

std::string written(const std::vector<TensorView>& tensors,
                    const Metadata& metadata = {}) {
  return as_text(serialize_safetensors(tensors, metadata));
}

std::string refusal_to_write(const std::vector<TensorView>& tensors,
                             const Metadata& metadata = {}) {
  return message_of<SafetensorsError>(
      [&] { serialize_safetensors(tensors, metadata); });
}

TEST(SafetensorsWriter, WritesTheseBytes) {
  EXPECT_EQ(written({}), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  EXPECT_EQ(written({}, {{"framework", "pt"}}),
            std::string("\x28\0\0\0\0\0\0\0", 8) +
                R"({"__metadata__":{"framework":"pt"}}     )");
  const std::vector<TensorView> tensors = {
      tensor("b", TensorType::kU8, {1, 3}, 3),
      tensor("a \"\n\xc3\xa9", TensorType::kBF16, {}, 2),
      tensor("c", TensorType::kI64, {1}, 8),
      tensor("a", TensorType::kI64, {2, 0}, 0),
  };
  const std::string header =
      R"({"__metadata__":{"a":"\\","b":""},)"
      R"("a":{"dtype":"I64","shape":[2,0],"data_offsets":[0,0]},)"
      R"("c":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
      "\"a \\\"\\n\xc3\xa9\""
      R"(:{"dtype":"BF16","shape":[],"data_offsets":[8,10]},)"
      R"("b":{"dtype":"U8","shape":[1,3],"data_offsets":[10,13]}})";
  EXPECT_EQ(written(tensors, {{"b", ""}, {"a", "\\"}}),
            std::string("\x08\x01\0\0\0\0\0\0", 8) + header + "     " +
                "abcdefgh" + "ab" + "abc");
}

// All types, in the order that the reference implementation gives them.
TEST(SafetensorsWriter, OrdersByTypeThenName) {
  std::vector<TensorView> tensors;
  for (int i = 0; i <= static_cast<int>(TensorType::kU64); ++i) {
    const auto type = static_cast<TensorType>(i);
    const std::string name(name_of(type));
    tensors.push_back(tensor("2" + name, type, {3}, 3 * size_of(type)));
    tensors.push_back(tensor("1" + name, type, {}, size_of(type)));
    tensors.push_back(tensor("0" + name, type, {5, 0}, 0));
  }
  const std::string file = written(tensors);
  const auto parsed = SafetensorsFile::parse(as_bytes(file));
  std::string types;
  for (const TensorView& t : parsed.tensors()) {
    types += t.name + " ";
    const auto offset =
        reinterpret_cast<const char*>(t.bytes.data()) - file.data();
    EXPECT_EQ(static_cast<std::size_t>(offset) % size_of(t.type), 0U) << t.name;
  }
  EXPECT_EQ(types,
            "0U64 1U64 2U64 0I64 1I64 2I64 0F64 1F64 2F64 0F32 1F32 2F32 "
            "0U32 1U32 2U32 0I32 1I32 2I32 0BF16 1BF16 2BF16 0F16 1F16 2F16 "
            "0U16 1U16 2U16 0I16 1I16 2I16 0I8 1I8 2I8 0U8 1U8 2U8 "
            "0BOOL 1BOOL 2BOOL ");
  for (const TensorView& t : tensors) {
    const TensorView* const again = parsed.find(t.name);
    ASSERT_NE(again, nullptr) << t.name;
    EXPECT_EQ(again->type, t.type);
    EXPECT_EQ(again->shape, t.shape);
    EXPECT_EQ(as_text(again->bytes), as_text(t.bytes));
  }
  std::reverse(tensors.begin(), tensors.end());
  EXPECT_EQ(written(tensors), file);
  EXPECT_EQ(written(parsed.tensors()), file);
}

TEST(SafetensorsWriter, RefusesWhatCannotBeRead) {
  const std::string start = "[safetensors] memory: ";
  constexpr auto kU8 = TensorType::kU8;
  EXPECT_EQ(
      refusal_to_write({tensor("a", kU8, {1}, 1), tensor("b", kU8, {1}, 1),
                        tensor("a", TensorType::kF32, {1}, 4)}),
      start + "two tensors have the name \"a\"");
  EXPECT_EQ(
      refusal_to_write({tensor("__metadata__", kU8, {1}, 1)}),
      start + "tensor \"__metadata__\": the name is reserved for metadata");
  EXPECT_EQ(refusal_to_write({tensor("a", TensorType::kF32, {2, 2}, 15)}),
            start +
                "tensor \"a\": F32 of shape [2,2] takes 16 bytes, but has "
                "15");
  EXPECT_EQ(refusal_to_write({tensor("a", kU8, {0}, 1)}),
            start + "tensor \"a\": U8 of shape [0] takes 0 bytes, but has 1");
  EXPECT_EQ(refusal_to_write({tensor("a", kU8, {-1, -2}, 2)}),
            start + "tensor \"a\": U8 of shape [-1,-2] has a size < 0");
  EXPECT_EQ(refusal_to_write({tensor("a", kU8, {INT64_MAX, 2, 0}, 0)}),
            start +
                "tensor \"a\": U8 of shape [9223372036854775807,2,0] does "
                "not fit 63 bits");
  EXPECT_EQ(refusal_to_write({tensor("a", static_cast<TensorType>(13), {}, 1)}),
            start + "tensor \"a\": unknown type 13");
  EXPECT_EQ(refusal_to_write({tensor("a\xff", kU8, {1}, 1)}),
            start + R"(tensor name "a\ufffd" is not UTF-8)");
  EXPECT_EQ(refusal_to_write({}, {{"\xc3", "v"}}),
            start + R"(metadata key "\ufffd" is not UTF-8)");
  EXPECT_EQ(refusal_to_write({}, {{"k", "\xed\xa0\x80"}})
                .rfind(start + "metadata value \"", 0),
            0U);
  std::string long_value;
  long_value.resize(kMaxHeaderBytes, 'a');
  EXPECT_EQ(refusal_to_write({}, {{"k", long_value}}),
            start + "header length 100000032 > limit 100000000");
}

TEST(SafetensorsWriter, ReplacesAFileThatIsMapped) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  write_safetensors(path, std::vector{tensor("a", TensorType::kU8, {3}, 3)});
  const SafetensorsFile old(path);
  // Its own source, among others.
  std::vector<TensorView> more = old.tensors();
  more.push_back(tensor("b", TensorType::kU8, {2}, 2));
  write_safetensors(path, more, {{"k", "v"}});
  EXPECT_EQ(as_text(old.find("a")->bytes), "abc");
  const SafetensorsFile now(path);
  EXPECT_EQ(as_text(now.find("a")->bytes), "abc");
  EXPECT_EQ(as_text(now.find("b")->bytes), "ab");
  EXPECT_EQ(now.metadata(), (Metadata{{"k", "v"}}));
  EXPECT_EQ(read_text(path), written(more, {{"k", "v"}}));
  EXPECT_EQ(folder.file_count(), 1);
}

TEST(SafetensorsWriter, LeavesTheOldFileOnError) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  write_text(path, "old");
  EXPECT_THROW(write_safetensors(
                   path, std::vector{tensor("a", TensorType::kU8, {3}, 2)}),
               SafetensorsError);
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(folder.file_count(), 1);
}

TEST(SafetensorsWriter, NamesTheFileInErrors) {
  const TemporaryFolder folder;
  const auto message = [](const std::filesystem::path& path) {
    return message_of<SafetensorsError>([&] { write_safetensors(path, {}); });
  };
  const auto none = folder / "none/a.safetensors";
  EXPECT_EQ(message(none), "[safetensors] " + none.string() +
                               ": cannot write: No such file or directory");
  std::filesystem::create_directory(folder / "folder");
  EXPECT_EQ(message(folder / "folder"), "[safetensors] " +
                                            (folder / "folder").string() +
                                            ": cannot write: Is a directory");
}

}  // namespace
}  // namespace polyattn::io::test
