// PINNsformer and its plain baseline: published sizes and names, sequences,
// matched start, norms under derivatives, training, errors. What they compute
// is compared with a twin in Python (public_weights_test.cc).
#include "polyattn/models/pinnsformer.h"

#include <torch/autograd.h>
#include <torch/optim/adamw.h>

#include "models/meta_device.h"
#include "nn/support.h"
#include "polyattn/models/pinn.h"
#include "polyattn/nn/match.h"

namespace polyattn::models {
namespace pinnsformer_test {

using test::expect_error;
using test::expect_gradients;

PinnsformerOptions small() {
  return PinnsformerOptions().dim(8).feed_forward(12).hidden(16);
}

TEST(Pinnsformer, HasThePublishedSize) {
  const auto count = [](const PinnsformerOptions& options) {
    return test::parameter_count<Pinnsformer>(options);
  };
  EXPECT_EQ(count({}), 453'561);
  // Of Navier-Stokes: three coordinates, two unknowns.
  EXPECT_EQ(count(PinnsformerOptions().inputs(3).outputs(2)), 454'106);
  EXPECT_EQ(test::parameter_count<Pinn>(PinnOptions()), 527'361);
}

TEST(Pinnsformer, HasThePublishedNames) {
  const Pinnsformer model;
  const auto parameters = model->named_parameters();
  EXPECT_EQ(parameters.size(), 52);
  const auto expect_size = [&](const char* name, torch::IntArrayRef size) {
    ASSERT_TRUE(parameters.contains(name)) << name;
    EXPECT_EQ(parameters[name].sizes(), size) << name;
  };
  expect_size("linear_emb.weight", {32, 2});
  for (const std::string part : {"encoder", "decoder"}) {
    const std::string layer = part + ".layers.0.";
    expect_size((layer + "attn.in_proj_weight").c_str(), {96, 32});
    expect_size((layer + "attn.in_proj_bias").c_str(), {96});
    expect_size((layer + "attn.out_proj.bias").c_str(), {32});
    expect_size((layer + "ff.linear.0.weight").c_str(), {256, 32});
    expect_size((layer + "ff.linear.1.w1").c_str(), {1});
    expect_size((layer + "ff.linear.2.weight").c_str(), {256, 256});
    expect_size((layer + "ff.linear.3.w2").c_str(), {1});
    expect_size((layer + "ff.linear.4.weight").c_str(), {32, 256});
    expect_size((layer + "act1.w1").c_str(), {1});
    expect_size((layer + "act2.w2").c_str(), {1});
    expect_size((part + ".act.w1").c_str(), {1});
  }
  expect_size("linear_out.0.weight", {512, 32});
  expect_size("linear_out.3.w2", {1});
  expect_size("linear_out.4.bias", {1});
  const Pinn plain;
  EXPECT_EQ(plain->named_parameters().keys(),
            (std::vector<std::string>{"linear.0.weight", "linear.0.bias",
                                      "linear.2.weight", "linear.2.bias",
                                      "linear.4.weight", "linear.4.bias",
                                      "linear.6.weight", "linear.6.bias"}));
}

TEST(Pinnsformer, BeginsAsPublished) {
  torch::manual_seed(1);
  const Pinnsformer model;
  const auto p = model->named_parameters();
  const auto all = [&](const char* name) {
    EXPECT_TRUE(p[name].eq(p[name].view(-1)[0]).all().item<bool>()) << name;
    return p[name].view(-1)[0].item<float>();
  };
  EXPECT_EQ(all("linear_emb.bias"), 0.01F);
  EXPECT_EQ(all("decoder.layers.0.attn.out_proj.bias"), 0.01F);
  EXPECT_EQ(all("decoder.layers.0.attn.in_proj_bias"), 0);
  EXPECT_EQ(all("encoder.layers.0.attn.in_proj_bias"), 0);
  EXPECT_EQ(all("linear_out.1.w1"), 1);
}

TEST(Pinnsformer, SequencesGoOnInTheLastCoordinate) {
  Pinnsformer model(small().steps(3).step(0.25));
  const auto points = torch::tensor({{1.0, 2.0}, {-1.0, 0.5}}, torch::kDouble);
  const auto expected =
      torch::tensor({{{1.0, 2.0}, {1.0, 2.25}, {1.0, 2.5}},
                     {{-1.0, 0.5}, {-1.0, 0.75}, {-1.0, 1.0}}},
                    torch::kDouble);
  EXPECT_TRUE(model->sequences(points).equal(expected));
}

// Norms come from a pass that can be differentiated as the other can.
TEST(Pinnsformer, WatchingNormsChangesNoDerivative) {
  torch::manual_seed(2);
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    Pinnsformer model(small().activation(formula));
    model->to(torch::kDouble);
    const auto rows = model->sequences(torch::rand({4, 2}, torch::kDouble));
    const auto second = [&] {
      const auto leaf = rows.detach().requires_grad_();
      auto d = leaf;
      auto u = model->forward(leaf);
      for (int order = 0; order < 2; ++order) {
        d = torch::autograd::grad({u.sum()}, {leaf}, {}, true, true)[0];
        u = d.select(-1, 1);
      }
      model->zero_grad();
      d.square().sum().backward();
      expect_gradients(*model->encoder->layers);
      return std::pair(d.detach(), model->linear_emb->weight.grad().clone());
    };
    const auto plain = second();
    const auto layers = nn::attention_layers(*model);
    ASSERT_EQ(layers.size(), 2U);
    EXPECT_EQ(layers[0]->kind(), "token");
    EXPECT_EQ(layers[1]->kind(), "cross");
    for (auto* layer : layers) layer->watch_norms(true);
    const auto watched = second();
    EXPECT_SAME(watched.first, plain.first);
    EXPECT_SAME(watched.second, plain.second);
    for (auto* layer : layers) {
      ASSERT_TRUE(layer->norms().has_value());
      EXPECT_EQ(layer->norms()->weight.sizes(),
                (std::vector<std::int64_t>{4, 2}));
      EXPECT_EQ(layer->keys(), 5);
    }
  }
}

TEST(Pinnsformer, StartCanBeMatched) {
  torch::manual_seed(3);
  Pinnsformer model(small().activation("x^3/sqrt(N)").qk_gain(3));
  const auto rows = model->sequences(torch::rand({64, 2}));
  const auto layers = nn::match_start(*model, [&] { model->forward(rows); });
  ASSERT_EQ(layers.size(), 2U);
  for (const auto& layer : layers) {
    for (const nn::HeadStart& head : layer) {
      EXPECT_LE(head.gain, 1);
      EXPECT_LE(head.after, 1.01 * head.softmax);
    }
  }
}

TEST(Pinnsformer, Learns) {
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    torch::manual_seed(4);
    Pinnsformer model(small().activation(formula));
    const auto rows = model->sequences(torch::rand({32, 2}));
    const auto wanted = torch::sin(3 * rows.select(-1, 0));
    torch::optim::AdamW optimizer(model->parameters(), 3e-3);
    double first = 0, last = 0;
    for (int step = 0; step < 60; ++step) {
      optimizer.zero_grad();
      const auto loss =
          (model->forward(rows).squeeze(-1) - wanted).square().mean();
      loss.backward();
      optimizer.step();
      (step == 0 ? first : last) = loss.item<double>();
    }
    expect_gradients(*model);
    EXPECT_LT(last, first / 3);
  }
}

TEST(Pinnsformer, CanBeCloned) {
  Pinnsformer model(small());
  const auto copy = std::dynamic_pointer_cast<PinnsformerImpl>(model->clone());
  const auto rows = torch::rand({2, 5, 2});
  EXPECT_TRUE(copy->forward(rows).equal(model->forward(rows)));
}

TEST(Pinnsformer, RefusesWhatDoesNotFit) {
  const auto make = [](const PinnsformerOptions& options) {
    return [=] { Pinnsformer model(options); };
  };
  expect_error(make(small().inputs(0)), "[Pinnsformer] inputs 0 < 1");
  expect_error(make(small().outputs(0)), "[Pinnsformer] outputs 0 < 1");
  expect_error(make(small().depth(0)), "[Pinnsformer] depth 0 < 1");
  expect_error(make(small().feed_forward(0)),
               "[Pinnsformer] feed_forward 0 < 1");
  expect_error(make(small().hidden(-1)), "[Pinnsformer] hidden -1 < 1");
  expect_error(make(small().steps(0)), "[Pinnsformer] steps 0 < 1");
  expect_error(make(small().step(0)),
               "[Pinnsformer] step 0 is no finite number above 0");
  expect_error(make(small().heads(3)),
               "[Attention] dim 8 is not a multiple of heads 3; give head_dim "
               "then");
  Pinnsformer model(small());
  expect_error(
      [&] {
        model->forward(torch::zeros({3, 2}));
      },
      "[Pinnsformer] sequences of size [3, 2] are not [P, N, 2]");
  expect_error(
      [&] {
        model->sequences(torch::zeros({3, 3}));
      },
      "[Pinnsformer] points of size [3, 3] are not [P, 2]");
  expect_error([] { Pinn plain(PinnOptions().depth(1)); },
               "[Pinn] depth 1 < 2");
  Pinn plain(PinnOptions().hidden(4));
  expect_error([&] { plain->forward(torch::zeros({3})); },
               "[Pinn] points of size [3] are not [..., 2]");
}

}  // namespace pinnsformer_test
}  // namespace polyattn::models
