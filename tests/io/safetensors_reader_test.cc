// The length before the header, the data behind it, and files on the disk.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/tensor_type.h"
#include "polyattn/io/safetensors.h"
#include "safetensors_bytes.h"

namespace polyattn::io::test {
namespace {

std::string entry(const std::string& name, const std::string& type,
                  const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":[" + shape +
         "],\"data_offsets\":[" + offsets + "]}";
}

std::string refusal_of(const std::string& entries, std::size_t data_size) {
  return refusal(file_of(braces(entries), std::string(data_size, '\7')));
}

std::string open_refusal(const std::filesystem::path& path) {
  return message_of<SafetensorsError>(
      [&] { const SafetensorsFile file(path); });
}

TEST(TensorType, HasNameAndSize) {
  const std::vector<std::pair<std::string, std::size_t>> expected = {
      {"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"I16", 2}, {"U16", 2},
      {"F16", 2},  {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},
      {"F64", 8},  {"I64", 8},  {"U64", 8}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto type = static_cast<TensorType>(i);
    EXPECT_EQ(name_of(type), expected[i].first);
    EXPECT_EQ(size_of(type), expected[i].second);
    EXPECT_EQ(parse_tensor_type(expected[i].first), type);
  }
  EXPECT_EQ(name_of(TensorType::kBF16), "BF16");
  EXPECT_EQ(name_of(TensorType::kF64), "F64");
  EXPECT_EQ(parse_tensor_type("f32"), std::nullopt);
  EXPECT_EQ(parse_tensor_type(""), std::nullopt);
  EXPECT_THROW(size_of(static_cast<TensorType>(13)), std::invalid_argument);
  EXPECT_THROW(name_of(static_cast<TensorType>(255)), std::invalid_argument);
}

TEST(TensorType, CountsBytes) {
  using Shape = std::vector<std::int64_t>;
  constexpr std::int64_t kHalf = std::int64_t{1} << 62;
  const auto f32 = [](const Shape& s) {
    return byte_count(TensorType::kF32, s);
  };
  const auto u8 = [](const Shape& s) { return byte_count(TensorType::kU8, s); };
  EXPECT_EQ(f32({}), 4U);
  EXPECT_EQ(f32({2, 3}), 24U);
  EXPECT_EQ(f32({2, 0, 3}), 0U);
  EXPECT_EQ(u8({kHalf}), std::uint64_t{1} << 62);
  EXPECT_EQ(u8({INT64_MAX}), static_cast<std::uint64_t>(INT64_MAX));
  EXPECT_EQ(f32({INT64_MAX}), std::nullopt);
  EXPECT_EQ(u8({kHalf, 2}), std::nullopt);
  EXPECT_EQ(u8({std::int64_t{1} << 32, std::int64_t{1} << 32}), std::nullopt);
  // Wherever the 0 is.
  EXPECT_EQ(u8({0, kHalf, 2}), std::nullopt);
  EXPECT_EQ(u8({kHalf, 2, 0}), std::nullopt);
  EXPECT_EQ(u8({kHalf, 0}), 0U);
}

TEST(SafetensorsReader, RefusesWrongLengths) {
  EXPECT_EQ(refusal(""),
            "[safetensors] x: file has 0 bytes, fewer than the 8 that hold the "
            "length of the header");
  EXPECT_EQ(refusal(std::string(7, '\0')),
            "[safetensors] x: file has 7 bytes, fewer than the 8 that hold the "
            "length of the header");
  EXPECT_EQ(refusal(length_bytes(3) + "{}"),
            "[safetensors] x: header length 3 > 2 bytes that follow: the file "
            "is cut short, or is not a safetensors file");
  EXPECT_EQ(refusal(length_bytes(100'000'000) + "{}"),
            "[safetensors] x: header length 100000000 > 2 bytes that follow: "
            "the file is cut short, or is not a safetensors file");
  EXPECT_EQ(refusal(length_bytes(100'000'001) + "{}"),
            "[safetensors] x: header length 100000001 > limit 100000000: this "
            "is not a safetensors file");
  EXPECT_EQ(refusal(length_bytes(UINT64_MAX) + "{}"),
            "[safetensors] x: header length 18446744073709551615 > limit "
            "100000000: this is not a safetensors file");
  EXPECT_EQ(refusal(length_bytes(2) + "{}"), "");
}

// The limit is that of the header alone, and it is exact.
TEST(SafetensorsReader, AcceptsAHeaderAtTheLimit) {
  std::string file = length_bytes(kMaxHeaderBytes) + "{}";
  file.resize(8 + kMaxHeaderBytes, ' ');
  EXPECT_EQ(refusal(file), "");
  file[8 + kMaxHeaderBytes - 1] = 'x';
  EXPECT_NE(refusal(file), "");
}

TEST(SafetensorsReader, GivesTensorsInTheOrderOfTheirData) {
  const std::string file = file_of("{" + entry("z", "U8", "1,3", "0,3") + "," +
                                       entry("b", "F32", "2", "3,11") + "," +
                                       entry("e", "F64", "0", "3,3") + "," +
                                       entry("d", "I64", "4,0,2", "3,3") + "," +
                                       entry("s", "I16", "", "11,13") + "}",
                                   "abcdefghijklm");
  const auto parsed = SafetensorsFile::parse(as_bytes(file));
  std::vector<std::string> found;
  for (const TensorView& t : parsed.tensors()) {
    found.push_back(t.name + " " + std::string(name_of(t.type)) +
                    to_string(t.shape) + as_text(t.bytes));
    EXPECT_EQ(parsed.find(t.name), &t);
  }
  // b is not aligned, which is allowed.
  EXPECT_EQ(found, (std::vector<std::string>{"z U8[1,3]abc", "d I64[4,0,2]",
                                             "e F64[0]", "b F32[2]defghijk",
                                             "s I16[]lm"}));
  for (const char* name : {"", "a", "bb", "zz"}) {
    EXPECT_EQ(parsed.find(name), nullptr) << name;
  }
  EXPECT_TRUE(parsed.metadata().empty());
}

TEST(SafetensorsReader, RefusesOffsetsThatDisagreeWithTheShape) {
  const std::string start = "[safetensors] x: tensor \"a\": ";
  EXPECT_EQ(refusal_of(entry("a", "F32", "2", "0,7"), 7),
            start + "F32 of shape [2] takes 8 bytes, but its offsets hold 7");
  EXPECT_EQ(refusal_of(entry("a", "BF16", "", "0,4"), 4),
            start + "BF16 of shape [] takes 2 bytes, but its offsets hold 4");
  EXPECT_EQ(refusal_of(entry("a", "U8", "3,0", "0,3"), 3),
            start + "U8 of shape [3,0] takes 0 bytes, but its offsets hold 3");
  EXPECT_EQ(refusal_of(entry("a", "U8", "2", "2,0"), 2),
            start + "begin 2 > end 0");
  EXPECT_EQ(refusal_of(entry("a", "U8", "4294967296,4294967296", "0,0"), 0),
            start + "U8 of shape [4294967296,4294967296] does not fit 63 bits");
  EXPECT_EQ(refusal_of(entry("a", "U16", "4611686018427387904", "0,0"), 0),
            start + "U16 of shape [4611686018427387904] does not fit 63 bits");
}

TEST(SafetensorsReader, RefusesDataThatIsNotCovered) {
  const std::string x = "[safetensors] x: ";
  EXPECT_EQ(refusal_of(entry("a", "U8", "4", "0,4"), 3),
            x + "tensor \"a\": end 4 > 3 bytes of data: the file is cut short; "
                "get or write it again");
  EXPECT_EQ(refusal_of(entry("a", "U8", "4", "0,4"), 5),
            x + "tensors end at 4, but the data has 5 bytes: the rest belongs "
                "to no tensor");
  EXPECT_EQ(refusal_of("", 1),
            x + "tensors end at 0, but the data has 1 bytes: the rest belongs "
                "to no tensor");
  EXPECT_EQ(refusal_of(entry("a", "U8", "2", "1,3"), 3),
            x + "tensor \"a\": begin 1 > 0, where the tensor before it ends: a "
                "hole");
  EXPECT_EQ(
      refusal_of(
          entry("a", "U8", "2", "0,2") + "," + entry("b", "U8", "1", "3,4"), 4),
      x + "tensor \"b\": begin 3 > 2, where the tensor before it ends: a "
          "hole");
  EXPECT_EQ(
      refusal_of(
          entry("b", "U8", "2", "1,3") + "," + entry("a", "U8", "2", "0,2"), 3),
      x + "tensor \"b\": begin 1 < 2, where the tensor before it ends: "
          "they overlap");
  EXPECT_EQ(
      refusal_of(
          entry("a", "U8", "2", "0,2") + "," + entry("b", "U8", "2", "0,2"), 2),
      x + "tensor \"b\": begin 0 < 2, where the tensor before it ends: "
          "they overlap");
  // An empty tensor in the middle of another one.
  EXPECT_EQ(
      refusal_of(
          entry("a", "U8", "4", "0,4") + "," + entry("b", "U8", "0", "2,2"), 4),
      x + "tensor \"b\": begin 2 < 4, where the tensor before it ends: "
          "they overlap");
}

// Whatever is cut off the end, or added to it, it is noticed.
TEST(SafetensorsReader, RefusesEveryTruncation) {
  const std::string file = file_of("{" + entry("a", "U8", "2", "0,2") + "," +
                                       entry("b", "U8", "3", "2,5") + "}",
                                   "abcde");
  EXPECT_EQ(refusal(file), "");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(refusal(file.substr(0, size)), "") << size;
  }
  EXPECT_NE(refusal(file + "f"), "");
}

TEST(SafetensorsFile, MapsAFileAndMoves) {
  static_assert(!std::is_copy_constructible_v<SafetensorsFile>);
  static_assert(std::is_nothrow_move_constructible_v<SafetensorsFile>);
  const TemporaryFolder folder;
  const std::string header = R"({"__metadata__":{"k":"v"},)" +
                             entry("a", "U8", "3", "0,3") + "," +
                             entry("b", "F32", "1", "3,7") + "}";
  write_text(folder / "file",
             file_of(header, std::string("abc\0\0\x80\x3f", 7)));
  SafetensorsFile first(folder / "file");
  const TensorView* const b = first.find("b");
  ASSERT_NE(b, nullptr);
  // Unlinked, then moved twice: the mapping stays where it is.
  std::filesystem::remove(folder / "file");
  SafetensorsFile second(std::move(first));
  SafetensorsFile third = SafetensorsFile::parse(as_bytes(file_of("{}", "")));
  third = std::move(second);
  EXPECT_EQ(third.find("b"), b);
  float value = 0;
  ASSERT_EQ(b->bytes.size(), sizeof(value));
  std::memcpy(&value, b->bytes.data(), sizeof(value));
  EXPECT_EQ(value, 1.0F);
  EXPECT_EQ(as_text(third.find("a")->bytes), "abc");
  EXPECT_EQ(third.metadata(), (Metadata{{"k", "v"}}));
}

TEST(SafetensorsFile, NamesTheFileInErrors) {
  const TemporaryFolder folder;
  const auto message = [&](const char* name, const std::string& text) {
    return "[safetensors] " + (folder / name).string() + ": " + text;
  };
  EXPECT_EQ(open_refusal(folder / "none"),
            message("none", "cannot read: No such file or directory"));
  std::filesystem::create_directory(folder / "folder");
  EXPECT_EQ(open_refusal(folder / "folder"),
            message("folder", "cannot read: Is a directory"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(open_refusal(folder / "pipe"),
            message("pipe", "cannot read: it is not a regular file"));
  write_text(folder / "empty", "");
  EXPECT_EQ(open_refusal(folder / "empty"),
            message("empty",
                    "file has 0 bytes, fewer than the 8 that hold the length "
                    "of the header"));
  write_text(folder / "zip", "PK\3\4 a checkpoint of another kind");
  EXPECT_EQ(open_refusal(folder / "zip"),
            message("zip",
                    "header length 7142815799143779152 > limit 100000000: "
                    "this is not a safetensors file"));
  write_text(folder / "cut", length_bytes(2) + "{");
  EXPECT_EQ(open_refusal(folder / "cut"),
            message("cut",
                    "header length 2 > 1 bytes that follow: the file is cut "
                    "short, or is not a safetensors file"));
}

}  // namespace
}  // namespace polyattn::io::test
