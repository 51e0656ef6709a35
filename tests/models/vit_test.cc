// ViT: sizes known from elsewhere, pooling, training, errors.
#include "polyattn/models/vit.h"

#include <torch/optim/adamw.h>

#include "models/meta_device.h"
#include "nn/support.h"

namespace polyattn::models {
namespace vit_test {

using test::expect_error;
using test::expect_gradients;

ViTOptions small() {
  return ViTOptions(32, 2, 2).image_size(16).patch_size(4).classes(5);
}

// timm has vit_tiny_patch16_224 and vit_small_patch16_224, torchvision
// vit_b_16. The small ones are counted by hand: 12 C^2 + 13 C for a block.
TEST(ViT, HasAsManyParametersAsOthers) {
  const auto count = [](const char* name) {
    return test::parameter_count<ViT>(
        vit_options(name).initialisation("torch"));
  };
  EXPECT_EQ(count("tiny"), 5'717'416);
  EXPECT_EQ(count("small"), 22'050'664);
  EXPECT_EQ(count("base"), 86'567'656);
  EXPECT_EQ(count("tiny28"), 4 * (12 * 64 * 64 + 13 * 64) + (16 + 1) * 64 +
                                 (1 + 50) * 64 + 2 * 64 + 65 * 10);
  EXPECT_EQ(count("tiny32"), 6 * (12 * 192 * 192 + 13 * 192) + (48 + 1) * 192 +
                                 (1 + 65) * 192 + 2 * 192 + 193 * 10);
}

TEST(ViT, KnowsItsNames) {
  EXPECT_EQ(vit_names(), (std::vector<std::string>{"tiny", "small", "base",
                                                   "tiny28", "tiny32"}));
  expect_error([] { vit_options("huge"); },
               "[vit_options] name \"huge\" is none of tiny, small, base, "
               "tiny28, tiny32");
}

TEST(ViT, PoolsAsAsked) {
  torch::manual_seed(1);
  const auto images = torch::randn({3, 3, 16, 16}, torch::kDouble);
  ViT by_class(small()), by_mean(small().pooling("mean"));
  by_class->to(torch::kDouble);
  by_mean->to(torch::kDouble);
  EXPECT_EQ(by_class->tokens(), 17);
  EXPECT_EQ(by_mean->tokens(), 16);
  EXPECT_EQ(by_class->forward(images).sizes(),
            (std::vector<std::int64_t>{3, 5}));
  // The same by hand.
  const auto rows = [&](ViTImpl& model, torch::Tensor x) {
    x = model.positions->forward(x);
    for (std::size_t i = 0; i < 2; ++i) {
      x = model.blocks->at<nn::BlockImpl>(i).forward(x);
    }
    return model.norm->forward(x);
  };
  EXPECT_SAME(by_mean->features(images),
              rows(*by_mean, by_mean->patches->forward(images)).mean(1));
  EXPECT_SAME(by_class->features(images),
              rows(*by_class, by_class->class_token->forward(
                                  by_class->patches->forward(images)))
                  .select(1, 0));
  EXPECT_SAME(by_class->forward(images),
              by_class->head->forward(by_class->features(images)));
}

TEST(ViT, DropPathGrowsWithDepth) {
  ViT model(
      ViTOptions(32, 5, 2).image_size(16).patch_size(4).classes(5).drop_path(
          0.2));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_DOUBLE_EQ(
        model->blocks->at<nn::BlockImpl>(i).drop_path->options.rate(),
        0.05 * static_cast<double>(i));
  }
  // In evaluation nothing is dropped.
  model->eval();
  const auto images = torch::randn({2, 3, 16, 16});
  EXPECT_TRUE(model->forward(images).equal(model->forward(images)));
  model->train();
  EXPECT_FALSE(model->forward(images).equal(model->forward(images)));
}

TEST(ViT, GradientsReachEveryParameter) {
  torch::manual_seed(2);
  for (const char* pooling : {"class", "mean"}) {
    auto options = small().pooling(pooling).activation("x^3/sqrt(N)");
    options.block()
        .layer_scale(0.1)
        .attention()
        .qk_norm("rms")
        .learned_scale(true)
        .output_norm("rms")
        .output_gate(true)
        .center_values(true)
        .short_conv(3);
    ViT model(options);
    model->forward(torch::randn({2, 3, 16, 16})).square().sum().backward();
    expect_gradients(*model);
  }
}

// Eight images of random pixels are learned by heart.
TEST(ViT, LossFalls) {
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    torch::manual_seed(3);
    ViT model(small().activation(formula));
    const auto images = torch::randn({8, 3, 16, 16});
    const auto labels = torch::arange(8, torch::kLong).remainder(5);
    torch::optim::AdamW optimiser(model->parameters(),
                                  torch::optim::AdamWOptions(3e-3));
    double first = 0, last = 0;
    for (int step = 0; step < 20; ++step) {
      optimiser.zero_grad();
      const auto loss =
          torch::cross_entropy_loss(model->forward(images), labels);
      loss.backward();
      optimiser.step();
      last = loss.item<double>();
      if (step == 0) first = last;
    }
    EXPECT_LT(last, 0.5 * first);
  }
}

TEST(ViT, ClonesAreApart) {
  torch::manual_seed(4);
  ViT model(small());
  const auto images = torch::randn({2, 3, 16, 16});
  const auto before = model->forward(images);
  const auto clone = std::dynamic_pointer_cast<ViTImpl>(model->clone());
  ASSERT_NE(clone, nullptr);
  EXPECT_TRUE(clone->forward(images).equal(before));
  const torch::NoGradGuard no_grad;
  for (auto& parameter : clone->parameters()) parameter.zero_();
  EXPECT_EQ(clone->forward(images).abs().max().item<float>(), 0);
  EXPECT_TRUE(model->forward(images).equal(before));
}

TEST(ViT, WatchesTheNormsOfItsLayers) {
  ViT model(small().activation("x^3/sqrt(N)"));
  const auto layers = nn::attention_layers(*model);
  ASSERT_EQ(layers.size(), 2U);
  for (nn::AttentionBase* layer : layers) layer->watch_norms(true);
  model->forward(torch::randn({3, 3, 16, 16}));
  for (const nn::AttentionBase* layer : layers) {
    ASSERT_TRUE(layer->norms());
    EXPECT_EQ(layer->norms()->weight.sizes(),
              (std::vector<std::int64_t>{3, 2}));
  }
}

TEST(ViT, Refuses) {
  const auto refuse = [](const ViTOptions& options,
                         const std::string& message) {
    expect_error([&] { const ViT model(options); }, "[ViT] " + message);
  };
  refuse(ViTOptions(8, 0, 2), "depth 0 < 1");
  refuse(small().classes(0), "classes 0 < 1");
  refuse(small().patch_size(0), "patch_size 0 < 1");
  refuse(small().patch_size(5), "image_size 16 is no multiple of patch_size 5");
  refuse(small().pooling("max"), "pooling \"max\" is none of class, mean");
  refuse(small().dropout(1), "dropout 1 is not in [0, 1)");
  refuse(small().drop_path(-1), "drop_path -1 is not in [0, 1)");
  expect_error([] { const ViT model(small().initialisation("he")); },
               "[initialise] name \"he\" is none of torch, vit, gpt2, xavier, "
               "pinn");
  ViT model(small());
  expect_error(
      [&] {
        model->forward(torch::randn({2, 3, 16, 20}));
      },
      "[ViT] images of size [2, 3, 16, 20] are not [B, 3, 16, 16]");
  expect_error(
      [&] {
        model->forward(torch::randn({2, 1, 16, 16}));
      },
      "[ViT] images of size [2, 1, 16, 16] are not [B, 3, 16, 16]");
}

}  // namespace vit_test
}  // namespace polyattn::models
