// torchvision's vit_b_16, swin_t and swin_v2_t at full size, from the folder
// POLYATTN_WEIGHTS.
#include <cstdlib>
#include <filesystem>

#include "nn/support.h"
#include "polyattn/models/state_file.h"
#include "polyattn/models/swin.h"
#include "polyattn/models/vit.h"

namespace polyattn::models {
namespace full_size_test {

template <typename Model>
void expect_logits(Model model, const std::string& name) {
  const char* path = std::getenv("POLYATTN_WEIGHTS");
  ASSERT_NE(path, nullptr) << "POLYATTN_WEIGHTS is not set";
  const std::filesystem::path folder = path;
  const torch::NoGradGuard no_grad;
  const NamedTensors io = load_tensors(folder / (name + "_io.safetensors"));
  model->eval();
  load_torchvision(model, load_tensors(folder / (name + ".safetensors")));
  EXPECT_LE(
      test::relative_error(model->forward(io.at("input")), io.at("logits")),
      1e-4);
}

TEST(FullSize, VitB16) { expect_logits(ViT(vit_options("base")), "full"); }

TEST(FullSize, SwinT) {
  expect_logits(Swin(swin_options("swin-tiny")), "swin_t");
  expect_logits(Swin(swin_options("swin-v2-tiny")), "swin_v2_t");
}

}  // namespace full_size_test
}  // namespace polyattn::models
