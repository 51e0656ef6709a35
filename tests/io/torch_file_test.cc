// From archive and pickle to tensors; tests/models reads files of torch itself.
#include "polyattn/io/torch_file.h"

#include <gtest/gtest.h>

#include <map>
#include <type_traits>

#include "support/temporary_folder.h"
#include "torch_file_bytes.h"

namespace polyattn::io::test {
namespace torch_file_test {

using polyattn::test::TemporaryFolder;

std::string message(std::string_view ops) {
  const std::string found = torch_refusal(torch_file_of(ops));
  const std::string before = "[torch_file] x: ";
  if (found.empty()) return found;
  EXPECT_TRUE(found.starts_with(before)) << found;
  return found.substr(before.size());
}

std::string message_of_tensor(const TensorOps& tensor) {
  return message(dict_op({{"w", tensor_op(tensor)}}));
}

std::string names_in(std::string_view ops) {
  const std::string bytes = torch_file_of(ops);
  const TorchFile file = TorchFile::parse(bytes_of(bytes), "x");
  std::string text;
  for (const TorchTensor& tensor : file.tensors()) text += tensor.name + ' ';
  return text;
}

TEST(TorchFile, GivesTensorsAndTheirStorages) {
  const TensorOps turned{.offset = 1, .shape = {2, 2}, .strides = {1, 3}};
  const std::string bytes =
      torch_file_of(dict_op({{"w", tensor_op()}, {"v", tensor_op(turned)}}));
  const TorchFile file = TorchFile::parse(bytes_of(bytes), "x");
  ASSERT_EQ(file.storages().size(), 1U);
  EXPECT_EQ(file.storages()[0].key, "0");
  EXPECT_EQ(file.storages()[0].type, TensorType::kF32);
  EXPECT_EQ(file.storages()[0].bytes.size(), 24U);
  EXPECT_EQ(file.storages()[0].bytes[23], std::byte{1});
  ASSERT_EQ(file.tensors().size(), 2U);
  const TorchTensor& v = file.tensors()[1];
  EXPECT_EQ(v.name, "v");
  EXPECT_EQ(v.storage, 0U);
  EXPECT_EQ(v.offset, 1);
  EXPECT_EQ(v.shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(v.strides, (std::vector<std::int64_t>{1, 3}));
}

TEST(TorchFile, KnowsTheTypes) {
  const std::map<std::string, std::pair<TensorType, std::int64_t>> types = {
      {"BoolStorage", {TensorType::kBool, 24}},
      {"ByteStorage", {TensorType::kU8, 24}},
      {"CharStorage", {TensorType::kI8, 24}},
      {"ShortStorage", {TensorType::kI16, 12}},
      {"IntStorage", {TensorType::kI32, 6}},
      {"LongStorage", {TensorType::kI64, 3}},
      {"HalfStorage", {TensorType::kF16, 12}},
      {"BFloat16Storage", {TensorType::kBF16, 12}},
      {"FloatStorage", {TensorType::kF32, 6}},
      {"DoubleStorage", {TensorType::kF64, 3}}};
  for (const auto& [name, type] : types) {
    SCOPED_TRACE(name);
    const std::string bytes =
        torch_file_of(dict_op({{"w", tensor_op({.type = name,
                                                .count = type.second,
                                                .shape = {3},
                                                .strides = {1}})}}));
    EXPECT_EQ(TorchFile::parse(bytes_of(bytes)).storages().at(0).type,
              type.first);
  }
  EXPECT_EQ(message_of_tensor({.type = "ComplexFloatStorage", .count = 3}),
            "tensor \"w\" has type \"torch.ComplexFloatStorage\", which is not "
            "supported");
}

TEST(TorchFile, FindsTheWeightsInWhatHoldsThem) {
  const std::string state = dict_op({{"a.w", tensor_op()}});
  EXPECT_EQ(names_in(state), "a.w ");
  for (const std::string key : {"model", "state_dict", "model_state_dict"}) {
    EXPECT_EQ(names_in(dict_op({{"epoch", "K\3"}, {key, state}})), "a.w ");
  }
  EXPECT_EQ(names_in(dict_op({{"model", dict_op({{"state_dict", state}})}})),
            "a.w ");
  // A tensor of such a name is a tensor.
  EXPECT_EQ(names_in(dict_op({{"model", tensor_op()}})), "model ");
  EXPECT_EQ(message(dict_op({{"model", state}, {"state_dict", state}})),
            "it holds several models: save the state_dict of one");
  EXPECT_EQ(message("}q\1" + text_op("model") + "h\1s"),
            "its dictionaries are nested too deeply");
}

TEST(TorchFile, TakesThePrefixOfDataParallelAway) {
  EXPECT_EQ(names_in(dict_op(
                {{"module.a", tensor_op()}, {"module.module.b", tensor_op()}})),
            "a module.b ");
  EXPECT_EQ(names_in(dict_op({{"module.a", tensor_op()}, {"b", tensor_op()}})),
            "module.a b ");
}

TEST(TorchFile, RefusesWhatHoldsNoTensors) {
  EXPECT_EQ(message("]"),
            "it holds no dictionary of tensors; save a state_dict");
  EXPECT_EQ(message(tensor_op()),
            "it holds no dictionary of tensors; save a state_dict");
  EXPECT_EQ(message(dict_op({{"w", tensor_op()}, {"lr", "K\1"}})),
            "\"lr\" is no tensor");
  EXPECT_EQ(message("}K\1" + tensor_op() + "s"),
            "a name of a tensor is no text");
  EXPECT_EQ(message(dict_op({{"w", tensor_op()}, {"w", tensor_op()}})),
            "\"w\" is there twice");
}

TEST(TorchFile, RefusesTensorsBeyondTheirStorage) {
  const auto beyond = [](const std::string& where) {
    return "tensor \"w\" at offset " + where +
           " reaches beyond the 6 elements of its storage";
  };
  EXPECT_EQ(message_of_tensor({.offset = 1}),
            beyond("1 of shape [2,3] and strides [3,1]"));
  EXPECT_EQ(message_of_tensor({.offset = -1}),
            beyond("-1 of shape [2,3] and strides [3,1]"));
  EXPECT_EQ(message_of_tensor({.offset = INT64_MAX}),
            beyond("9223372036854775807 of shape [2,3] and strides [3,1]"));
  EXPECT_EQ(message_of_tensor({.strides = {4, 1}}),
            beyond("0 of shape [2,3] and strides [4,1]"));
  // 2^63 and 2^64 in all.
  constexpr std::int64_t kBig = std::int64_t{1} << 62;
  EXPECT_EQ(message_of_tensor({.shape = {3}, .strides = {kBig}}),
            beyond("0 of shape [3] and strides [4611686018427387904]"));
  EXPECT_EQ(message_of_tensor({.shape = {2, 2, 1}, .strides = {kBig, kBig, 0}}),
            beyond("0 of shape [2,2,1] and strides "
                   "[4611686018427387904,4611686018427387904,0]"));
  EXPECT_EQ(message_of_tensor({.offset = 7, .shape = {0}, .strides = {1}}),
            beyond("7 of shape [0] and strides [1]"));
  EXPECT_EQ(message_of_tensor({.offset = 6, .shape = {0}, .strides = {1}}), "");
  EXPECT_EQ(message_of_tensor({.offset = 5, .shape = {}, .strides = {}}), "");
  // Strides of what has one element do not matter.
  EXPECT_EQ(message_of_tensor({.shape = {1, 6}, .strides = {kBig, 1}}), "");
}

TEST(TorchFile, RefusesShapesThatAreNone) {
  constexpr std::int64_t kBig = std::int64_t{1} << 40;
  EXPECT_EQ(message_of_tensor({.shape = {kBig}, .strides = {0}}),
            "tensor \"w\" of shape [1099511627776] has more elements than the "
            "6 of its storage");
  EXPECT_EQ(message_of_tensor({.shape = {kBig, kBig, 0}, .strides = {0, 0, 0}}),
            "tensor \"w\" of shape [1099511627776,1099511627776,0] has more "
            "elements than the 6 of its storage");
  EXPECT_EQ(message_of_tensor({.shape = {-1, 3}}),
            "tensor \"w\" has a size or stride that is no count");
  EXPECT_EQ(message_of_tensor({.strides = {-3, 1}}),
            "tensor \"w\" has a size or stride that is no count");
  EXPECT_EQ(message_of_tensor({.shape = {6}}),
            "tensor \"w\" has 1 dimensions and 2 strides");
  EXPECT_EQ(message_of_tensor({.shape = std::vector<std::int64_t>(65, 1)}),
            "tensor \"w\" has no shape or strides");
}

TEST(TorchFile, RefusesStoragesThatAreNotWhatTheySay) {
  EXPECT_EQ(message_of_tensor({.key = "1"}),
            "tensor \"w\" lies in \"a/data/1\", which is missing");
  EXPECT_EQ(message_of_tensor({.key = "../version"}),
            "tensor \"w\" lies in \"a/data/../version\", which is missing");
  for (const std::int64_t count :
       {std::int64_t{5}, std::int64_t{7}, std::int64_t{-1}, INT64_MAX}) {
    EXPECT_EQ(message_of_tensor({.count = count}),
              "tensor \"w\": its storage \"a/data/0\" has 24 bytes, not those "
              "of " +
                  std::to_string(count) + " elements of F32");
  }
  EXPECT_EQ(message(dict_op({{"w", tensor_op()},
                             {"v", tensor_op({.type = "IntStorage"})}})),
            "tensor \"v\": its storage \"a/data/0\" is of two types");
}

TEST(TorchFile, SaysWhatAFileIsInstead) {
  EXPECT_EQ(torch_refusal(""), "[torch_file] x: it is no file of torch.save");
  EXPECT_EQ(
      torch_refusal(
          "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."),
      "[torch_file] x: it has the format of torch before 1.6. Load it with "
      "Python and save it again: torch.save(torch.load(old, "
      "map_location=\"cpu\"), new)");
  EXPECT_EQ(torch_refusal(zip_of({{"a/b.txt", "x"}})),
            "[torch_file] x: it is a zip archive without a data.pkl: "
            "torch.save did not write it");
  EXPECT_EQ(torch_refusal(zip_of({{"a/b/data.pkl", "x"}})),
            "[torch_file] x: it is a zip archive without a data.pkl: "
            "torch.save did not write it");
  EXPECT_EQ(torch_refusal(zip_of({{"a/constants.pkl", "x"}})),
            "[torch_file] x: it is a program of TorchScript: save the "
            "state_dict of its module instead");
  EXPECT_EQ(torch_refusal(zip_of({{"a/data.pkl", "x"}}, {.method = 8})),
            "[torch_file] x: its member \"a/data.pkl\" is compressed, which "
            "torch.save never does");
  EXPECT_EQ(torch_refusal(zip_of({{"a/data.pkl", "x"}, {"b/data.pkl", "x"}})),
            "[torch_file] x: it has two pickles, data.pkl");
  EXPECT_EQ(torch_refusal(zip_of(
                {{"a/data.pkl", pickle_of("}")}, {"a/byteorder", "big"}})),
            "[torch_file] x: its numbers are not little-endian");
  EXPECT_EQ(torch_refusal(zip_of(
                {{"a/data.pkl", pickle_of("}")}, {"a/byteorder", "little"}})),
            "");
}

TEST(TorchFile, IsKnownByItsBytesOrItsName) {
  const TemporaryFolder folder;
  const std::string file = torch_file_of("}");
  const std::string safetensors = std::string("\2\0\0\0\0\0\0\0{}", 10);
  EXPECT_TRUE(is_torch_file(folder.write("a.weights", file)));
  EXPECT_FALSE(is_torch_file(folder.write("b.safetensors", file)));
  EXPECT_TRUE(is_torch_file(folder.write("c.pth", "neither")));
  EXPECT_TRUE(is_torch_file(folder.write("d.bin", "")));
  EXPECT_FALSE(is_torch_file(folder.write("e.pt", safetensors)));
  EXPECT_FALSE(is_torch_file(folder.write("f", "neither")));
  EXPECT_TRUE(is_torch_file(folder / "missing.pt"));
}

TEST(TorchFile, MapsAFileAndMoves) {
  static_assert(!std::is_copy_constructible_v<TorchFile>);
  const TemporaryFolder folder;
  TorchFile first(
      folder.write("w.pth", torch_file_of(dict_op({{"w", tensor_op()}}))));
  TorchFile second(std::move(first));
  const std::string other = torch_file_of("}");
  TorchFile third = TorchFile::parse(bytes_of(other), "x");
  third = std::move(second);
  EXPECT_EQ(third.storages().at(0).bytes[23], std::byte{1});
  const std::string missing = polyattn::test::message_of<TorchFileError>(
      [&] { const TorchFile file(folder / "missing.pth"); });
  EXPECT_TRUE(missing.starts_with(
      "[torch_file] " + (folder / "missing.pth").string() + ": cannot read: "))
      << missing;
}

// Wherever the file ends it is refused.
TEST(TorchFile, RefusesFilesThatAreCutShort) {
  const std::string whole = torch_file_of(dict_op({{"w", tensor_op()}}));
  ASSERT_EQ(torch_refusal(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(torch_refusal(whole.substr(0, size)), "") << size;
  }
}

}  // namespace torch_file_test
}  // namespace polyattn::io::test
