// torchvision's vit_b_16 at full size, from the folder POLYATTN_WEIGHTS.
#include <cstdlib>
#include <filesystem>

#include "nn/support.h"
#include "polyattn/models/state_file.h"
#include "polyattn/models/vit.h"

namespace polyattn::models {
namespace full_size_test {

TEST(FullSize, VitB16) {
  const char* path = std::getenv("POLYATTN_WEIGHTS");
  ASSERT_NE(path, nullptr) << "POLYATTN_WEIGHTS is not set";
  const std::filesystem::path folder = path;
  const torch::NoGradGuard no_grad;
  const NamedTensors io = load_tensors(folder / "full_io.safetensors");
  ViT model(vit_options("base"));
  model->eval();
  load_torchvision(model, load_tensors(folder / "full.safetensors"));
  EXPECT_LE(
      test::relative_error(model->forward(io.at("input")), io.at("logits")),
      1e-4);
}

}  // namespace full_size_test
}  // namespace polyattn::models
