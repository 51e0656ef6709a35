// DeiT: names, sizes known from elsewhere, its two tokens and heads.
#include "polyattn/models/deit.h"

#include <torch/optim/adamw.h>

#include "models/meta_device.h"
#include "nn/support.h"

namespace polyattn::models {
namespace deit_test {

using test::expect_error;

ViTOptions small() {
  return ViTOptions(32, 2, 2).image_size(16).patch_size(4).classes(5).distilled(
      true);
}

// Of deit_{size}_patch16_224 and deit_{size}_distilled_patch16_224.
TEST(DeiT, HasAsManyParametersAsThePublicModels) {
  const auto count = [](const char* name) {
    return test::parameter_count<ViT>(
        deit_options(name).initialisation("torch"));
  };
  EXPECT_EQ(count("tiny"), 5'717'416);
  EXPECT_EQ(count("tiny-distilled"), 5'910'800);
  EXPECT_EQ(count("small"), 22'050'664);
  EXPECT_EQ(count("small-distilled"), 22'436'432);
  EXPECT_EQ(count("base"), 86'567'656);
  EXPECT_EQ(count("base-distilled"), 87'338'192);
  // A token, its position, and a head.
  EXPECT_EQ(count("tiny32-distilled"), count("tiny32") + 2 * 192 + 193 * 10);
}

TEST(DeiT, KnowsItsNames) {
  EXPECT_EQ(deit_names(),
            (std::vector<std::string>{
                "tiny", "tiny-distilled", "small", "small-distilled", "base",
                "base-distilled", "tiny32", "tiny32-distilled"}));
  expect_error([] { deit_options("huge"); },
               "[deit_options] name \"huge\" is none of tiny, tiny-distilled, "
               "small, small-distilled, base, base-distilled, tiny32, "
               "tiny32-distilled");
}

// Class, distillation, patches: the same by hand.
TEST(DeiT, EachHeadReadsTheRowOfItsToken) {
  torch::manual_seed(1);
  ViT model(small());
  model->to(torch::kDouble);
  EXPECT_EQ(model->tokens(), 18);
  EXPECT_EQ(model->prefix(), 2);
  const torch::NoGradGuard no_grad;
  model->dist_token->weight.normal_();
  model->class_token->weight.normal_();
  const auto images = torch::randn({3, 3, 16, 16}, torch::kDouble);
  torch::Tensor x = torch::cat({model->class_token->weight.expand({3, 1, 32}),
                                model->dist_token->weight.expand({3, 1, 32}),
                                model->patches->forward(images)},
                               1) +
                    model->positions->weight;
  for (std::size_t i = 0; i < 2; ++i) {
    x = model->blocks->at<nn::BlockImpl>(i).forward(x);
  }
  x = model->norm->forward(x);
  const auto head = model->head->forward(x.select(1, 0));
  const auto head_dist = model->head_dist->forward(x.select(1, 1));
  const DistilledLogits logits = model->distilled_logits(images);
  EXPECT_SAME(logits.head, head);
  EXPECT_SAME(logits.head_dist, head_dist);
  EXPECT_SAME(model->forward(images), (head + head_dist) / 2);
  EXPECT_SAME(model->features(images), x.select(1, 0));
  EXPECT_FALSE(head.equal(head_dist));
}

TEST(DeiT, GradientsReachEveryParameter) {
  torch::manual_seed(2);
  auto options = small().activation("x^3/sqrt(N)");
  options.block().attention().short_conv(3);  // of the patches alone
  ViT model(options);
  const auto logits = model->distilled_logits(torch::randn({2, 3, 16, 16}));
  (logits.head.square().sum() + logits.head_dist.square().sum()).backward();
  test::expect_gradients(*model);
}

// Eight images of random pixels: each head learns labels of its own.
TEST(DeiT, LossFalls) {
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    torch::manual_seed(3);
    ViT model(small().activation(formula));
    const auto images = torch::randn({8, 3, 16, 16});
    const auto labels = torch::arange(8, torch::kLong).remainder(5);
    const auto others = (labels + 1).remainder(5);
    torch::optim::AdamW optimiser(model->parameters(),
                                  torch::optim::AdamWOptions(3e-3));
    double first = 0, last = 0;
    for (int step = 0; step < 30; ++step) {
      optimiser.zero_grad();
      const DistilledLogits logits = model->distilled_logits(images);
      const auto loss = torch::cross_entropy_loss(logits.head, labels) +
                        torch::cross_entropy_loss(logits.head_dist, others);
      loss.backward();
      optimiser.step();
      last = loss.item<double>();
      if (step == 0) first = last;
    }
    EXPECT_LT(last, 0.5 * first);
  }
}

TEST(DeiT, Refuses) {
  expect_error(
      [] { const ViT model(small().pooling("mean")); },
      "[ViT] pooling \"mean\", but a distilled model reads the rows of "
      "its tokens");
  ViT plain(small().distilled(false));
  expect_error(
      [&] {
        plain->distilled_logits(torch::randn({2, 3, 16, 16}));
      },
      "[ViT] distilled_logits of a model that is not distilled");
}

}  // namespace deit_test
}  // namespace polyattn::models
