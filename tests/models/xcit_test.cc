// XCiT: sizes known from elsewhere, images of any size, norms, the matched
// start, training, errors.
#include "polyattn/models/xcit.h"

#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>

#include "models/meta_device.h"
#include "nn/support.h"

namespace polyattn::models {
namespace xcit_test {

using test::expect_error;
using test::expect_gradients;

// Away from the start, where some gradients nearly vanish.
void disturb(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    parameter.add_(0.1 * torch::randn_like(parameter));
  }
}

XCiTOptions small() {
  return XCiTOptions(32, 2, 4).image_size(16).patch_size(4).classes(5);
}

// What the sizes of facebookresearch/xcit come to, with patches of 16 and of 8.
// The small ones are counted by hand: 12 C^2 + 40 C + H for a block,
// 12 C^2 + 15 C for one of the class token.
TEST(XCiT, HasAsManyParametersAsOthers) {
  const auto count = [](const std::string& name) {
    return test::parameter_count<XCiT>(
        xcit_options(name).initialisation("torch"));
  };
  struct Size {
    std::string name;
    std::int64_t p16, p8;
  };
  const Size sizes[] = {{"nano_12", 3'053'224, 3'049'016},
                        {"tiny_12", 6'716'272, 6'706'504},
                        {"tiny_24", 12'116'896, 12'107'128},
                        {"small_12", 26'253'304, 26'213'032},
                        {"small_24", 47'671'384, 47'631'112},
                        {"medium_24", 84'395'752, 84'323'624},
                        {"large_24", 189'096'136, 188'932'648}};
  for (const Size& size : sizes) {
    EXPECT_EQ(count(size.name + "_p16"), size.p16) << size.name;
    EXPECT_EQ(count(size.name + "_p8"), size.p8) << size.name;
  }
  const auto tiny = [](std::int64_t channels) {
    constexpr std::int64_t c = 96, h = 4;
    const std::int64_t patches = 9 * (channels * c / 2 + c / 2 * c) + 3 * c;
    return patches + (64 + 1 + 1) * c + 4 * (12 * c * c + 40 * c + h) +
           2 * (12 * c * c + 15 * c) + 2 * c + (c + 1) * 10;
  };
  EXPECT_EQ(count("tiny28"), tiny(1));
  EXPECT_EQ(count("tiny32"), tiny(3));
  EXPECT_EQ(2 * std::size(sizes) + 2, xcit_names().size());
}

TEST(XCiT, KnowsItsNames) {
  EXPECT_EQ(xcit_names().size(), 16U);
  EXPECT_EQ(xcit_names().front(), "nano_12_p16");
  EXPECT_EQ(xcit_names().back(), "tiny32");
  EXPECT_FALSE(xcit_options("nano_12_p8").tokens_norm());
  EXPECT_TRUE(xcit_options("tiny_12_p8").tokens_norm());
  EXPECT_EQ(xcit_options("small_12_p16").block().layer_scale(), 1);
  EXPECT_EQ(xcit_options("small_24_p16").block().layer_scale(), 1e-5);
  expect_error([] { xcit_options("huge"); },
               "[xcit_options] name \"huge\" is none of nano_12_p16, "
               "tiny_12_p16, tiny_24_p16, small_12_p16, small_24_p16, "
               "medium_24_p16, large_24_p16, nano_12_p8, tiny_12_p8, "
               "tiny_24_p8, small_12_p8, small_24_p8, medium_24_p8, "
               "large_24_p8, tiny28, tiny32");
}

TEST(XCiT, TakesImagesOfAnySizeThatThePatchesDivide) {
  XCiT model(small());
  model->eval();
  EXPECT_EQ(model->tokens(), 17);
  for (const std::int64_t width : {4, 12, 20}) {
    EXPECT_EQ(model->forward(torch::randn({2, 3, 8, width})).sizes(),
              (std::vector<std::int64_t>{2, 5}));
  }
  expect_error(
      [&] {
        model->forward(torch::randn({2, 3, 16, 18}));
      },
      "[ConvPatchEmbedding] images of 16 x 18 are no multiple of patch_size 4");
}

TEST(XCiT, GradientsReachEveryParameter) {
  torch::manual_seed(2);
  for (const bool tokens_norm : {true, false}) {
    XCiT model(small().tokens_norm(tokens_norm).activation("x^3/sqrt(N)"));
    model->to(torch::kDouble);
    disturb(*model);
    model->forward(torch::randn({2, 3, 16, 16}, torch::kDouble))
        .square()
        .sum()
        .backward();
    expect_gradients(*model);
  }
}

// A step along the gradient changes the loss by as much as it says.
TEST(XCiT, GradientsAreThoseOfTheLoss) {
  torch::manual_seed(6);
  XCiT model(small().activation("x^3/sqrt(N)"));
  model->to(torch::kDouble);
  disturb(*model);
  const auto images = torch::randn({3, 3, 16, 16}, torch::kDouble);
  const auto loss = [&] { return model->forward(images).square().sum(); };
  loss().backward();
  const torch::NoGradGuard no_grad;
  double slope = 0;
  for (const auto& p : model->parameters()) {
    slope += p.grad().square().sum().item<double>();
  }
  const auto moved = [&](double by) {
    for (auto& p : model->parameters()) p.add_(p.grad(), by);
    const double value = loss().item<double>();
    for (auto& p : model->parameters()) p.sub_(p.grad(), by);
    return value;
  };
  // The step moves the parameters by 1e-5 in all; the error is of its square.
  const double h = 1e-5 / std::sqrt(slope);
  EXPECT_NEAR((moved(h) - moved(-h)) / (2 * h) / slope, 1, 1e-6);
}

// Eight images of random pixels are learned by heart.
TEST(XCiT, LossFalls) {
  for (const char* formula : {"softmax", "x^3/sqrt(N)", "x^2/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    torch::manual_seed(3);
    XCiT model(small().activation(formula));
    const auto images = torch::randn({8, 3, 16, 16});
    const auto labels = torch::arange(8, torch::kLong).remainder(5);
    torch::optim::AdamW optimiser(model->parameters(),
                                  torch::optim::AdamWOptions(3e-3));
    double first = 0, last = 0;
    for (int step = 0; step < 25; ++step) {
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

// An element of 1e-6 before a norm would have a gradient of 1e5.
TEST(XCiT, ClassTokenBeginsAsAToken) {
  for (const char* scheme : {"torch", "vit", "gpt2", "xavier"}) {
    SCOPED_TRACE(scheme);
    torch::manual_seed(8);
    XCiT model(small().initialisation(scheme));
    EXPECT_GT(model->class_token->weight.abs().mean().item<double>(), 0.01);
  }
}

TEST(XCiT, DropPathIsTheSameInAllBlocks) {
  auto options = small();
  options.block().drop_path(0.2);
  XCiT model(options);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(model->blocks->at<nn::XcaBlockImpl>(i).drop_path->options.rate(),
              0.2);
  }
}

TEST(XCiT, WatchesTheNormsOfItsLayers) {
  XCiT model(small().activation("x^3/sqrt(N)"));
  const auto layers = nn::attention_layers(*model);
  ASSERT_EQ(layers.size(), 4U);
  for (nn::AttentionBase* layer : layers) layer->watch_norms(true);
  model->forward(torch::randn({3, 3, 16, 16}));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(layers[i]->kind(), i < 2 ? "channel" : "class");
    ASSERT_TRUE(layers[i]->norms());
    EXPECT_EQ(layers[i]->norms()->weight.sizes(),
              (std::vector<std::int64_t>{3, 4}));
    // Channels of a head, or patches and the class token.
    EXPECT_EQ(layers[i]->keys(), i < 2 ? 8 : 17);
  }
}

TEST(XCiT, ClonesAreApart) {
  torch::manual_seed(4);
  XCiT model(small());
  const auto images = torch::randn({2, 3, 16, 16});
  model->forward(images);
  model->eval();
  const auto before = model->forward(images);
  const auto clone = std::dynamic_pointer_cast<XCiTImpl>(model->clone());
  ASSERT_NE(clone, nullptr);
  EXPECT_TRUE(clone->forward(images).equal(before));
  clone->train();
  clone->forward(images);
  EXPECT_TRUE(model->forward(images).equal(before));
}

// The running values of BatchNorm are part of the state.
TEST(XCiT, StateHasItsBuffers) {
  torch::manual_seed(7);
  XCiT from(small()), to(small());
  const auto images = torch::randn({4, 3, 16, 16});
  from->forward(images);
  load_state(*to, state_of(*from));
  from->eval();
  to->eval();
  EXPECT_TRUE(from->forward(images).equal(to->forward(images)));
  NamedTensors without = state_of(*from);
  without.erase("blocks.1.local.norm.running_var");
  try {
    load_state(*to, without);
    ADD_FAILURE() << "no error";
  } catch (const WeightsError& error) {
    EXPECT_EQ(
        error.problems(),
        (std::vector<std::string>{"missing: blocks.1.local.norm.running_var"}));
  }
}

TEST(XCiT, Refuses) {
  const auto refuse = [](const XCiTOptions& options,
                         const std::string& message) {
    expect_error([&] { const XCiT model(options); }, message);
  };
  refuse(XCiTOptions(32, 0, 4), "[XCiT] depth 0 < 1");
  refuse(small().class_depth(0), "[XCiT] class_depth 0 < 1");
  refuse(small().classes(0), "[XCiT] classes 0 < 1");
  refuse(small().patch_size(0), "[XCiT] patch_size 0 < 1");
  refuse(small().image_size(18),
         "[XCiT] image_size 18 is no multiple of patch_size 4");
  refuse(small().image_size(18).patch_size(6),
         "[ConvPatchEmbedding] patch_size 6 is no power of 2 above 1");
  refuse(small().dropout(1), "[XCiT] dropout 1 is not in [0, 1)");
}

// A checkpoint of another family.
TEST(XCiT, RefusesWeightsOfAnother) {
  XCiT model(small());
  try {
    load_xcit(model, {{"conv_proj.weight", torch::ones({2, 3})},
                      {"cls_token", torch::ones({1, 1, 8})},
                      {"cls_attn_blocks.0.attn.q.weight", torch::ones({2, 2})},
                      {"cls_attn_blocks.0.attn.k.weight", torch::ones({2, 2})},
                      {"cls_attn_blocks.0.attn.v.weight", torch::ones({2})}});
    FAIL() << "no error";
  } catch (const WeightsError& error) {
    const auto has = [&](const std::string& problem) {
      const auto& all = error.problems();
      return std::find(all.begin(), all.end(), problem) != all.end();
    };
    EXPECT_TRUE(
        has("missing: patch_embed.proj.0.0.weight (for "
            "patches.convs.0.weight)"));
    EXPECT_TRUE(has("misshapen: cls_token is [1, 1, 8], not [1, 1, 32]"));
    EXPECT_TRUE(has("extra: conv_proj.weight [2, 3]"));
    EXPECT_TRUE(has("extra: cls_attn_blocks.0.attn.v.weight [2]"));
  }
}

}  // namespace xcit_test
}  // namespace polyattn::models
