// Named tensors in files.
#include "polyattn/models/state_file.h"

#include <filesystem>

#include "nn/support.h"
#include "polyattn/models/gpt.h"
#include "support/message_of.h"

namespace polyattn::models {
namespace state_file_test {

class StateFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() /
      ("polyattn_state_file_test_" + std::to_string(::getpid()));
};

TEST_F(StateFile, KeepsEveryType) {
  NamedTensors tensors;
  for (const auto type :
       {torch::kBool, torch::kUInt8, torch::kInt8, torch::kInt16, torch::kInt32,
        torch::kInt64, torch::kFloat16, torch::kBFloat16, torch::kFloat32,
        torch::kFloat64}) {
    tensors[c10::toString(type)] =
        torch::randint(0, 2, {3, 5}, torch::kLong).to(type);
  }
  tensors["scalar"] = torch::tensor(2.5);
  tensors["empty"] = torch::empty({0, 3});
  tensors["strided"] = torch::randn({4, 6}).t().slice(1, 0, 4, 2);
  save_tensors(path_, tensors, {{"made by", "a test"}});
  const NamedTensors loaded = load_tensors(path_);
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    SCOPED_TRACE(name);
    EXPECT_EQ(loaded.at(name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(loaded.at(name).equal(tensor));
  }
  EXPECT_EQ(io::SafetensorsFile(path_).metadata().at("made by"), "a test");
}

TEST_F(StateFile, BytesOfBoolBecomeTruth) {
  const std::array bytes = {std::byte{0}, std::byte{1}, std::byte{7}};
  const io::TensorView view{.name = "mask",
                            .type = io::TensorType::kBool,
                            .shape = {3},
                            .bytes = bytes};
  io::write_safetensors(path_, {&view, 1});
  EXPECT_TRUE(
      load_tensors(path_).at("mask").equal(torch::tensor({false, true, true})));
}

TEST_F(StateFile, RefusesTypesOfOneSideOnly) {
  const std::array bytes = {std::byte{1}, std::byte{0}};
  const io::TensorView view{.name = "count",
                            .type = io::TensorType::kU16,
                            .shape = {1},
                            .bytes = bytes};
  io::write_safetensors(path_, {&view, 1});
  EXPECT_EQ(polyattn::test::message_of<io::SafetensorsError>(
                [&] { load_tensors(path_); }),
            "[safetensors] " + path_.string() +
                ": tensor count has type U16, which torch does not have");
  EXPECT_EQ(
      polyattn::test::message_of<io::SafetensorsError>([&] {
        save_tensors(path_, {{"z", torch::ones(1, torch::kComplexFloat)}});
      }),
      "[safetensors] " + path_.string() +
          ": tensor z has type ComplexFloat, which the format does not "
          "have");
}

TEST_F(StateFile, ModelThereAndBack) {
  const auto options = GptOptions(16, 2, 2).vocabulary(11).context(8);
  Gpt from(options), to(options);
  const auto tokens = torch::randint(11, {2, 8}, torch::kLong);
  EXPECT_FALSE(from->forward(tokens).equal(to->forward(tokens)));
  save_tensors(path_, state_of(*from));
  load_state(*to, load_tensors(path_));
  EXPECT_TRUE(from->forward(tokens).equal(to->forward(tokens)));
}

}  // namespace state_file_test
}  // namespace polyattn::models
