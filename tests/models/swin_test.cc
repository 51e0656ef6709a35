// Swin: sizes known from elsewhere, maps of any size, training, errors.
#include "polyattn/models/swin.h"

#include <torch/optim/adamw.h>

#include "models/meta_device.h"
#include "nn/support.h"
#include "nn/windows.h"
#include "polyattn/models/vit.h"

namespace polyattn::models {
namespace swin_test {

using test::expect_error;
using test::expect_gradients;

SwinOptions small(std::int64_t version = 1) {
  return SwinOptions(16, {2, 2}, {2, 4})
      .version(version)
      .patch_size(2)
      .window(4)
      .classes(5);
}

// Of a block of width c: projections, mlp, norms, and what the bias takes.
std::int64_t block_count(std::int64_t c, std::int64_t bias) {
  return 12 * c * c + 13 * c + bias;
}

// What torchvision says of its own; the small ones by hand.
TEST(Swin, HasAsManyParametersAsOthers) {
  const auto count = [](const char* name) {
    return test::parameter_count<Swin>(
        swin_options(name).initialisation("torch"));
  };
  EXPECT_EQ(count("swin-tiny"), 28'288'354);
  EXPECT_EQ(count("swin-small"), 49'606'258);
  EXPECT_EQ(count("swin-base"), 87'768'224);
  EXPECT_EQ(count("swin-v2-tiny"), 28'351'570);
  EXPECT_EQ(count("swin-v2-small"), 49'737'442);
  EXPECT_EQ(count("swin-v2-base"), 87'930'848);
  const auto tables28 = [](std::int64_t heads) { return 169 * heads; };
  EXPECT_EQ(count("swin-tiny28"),
            (4 + 1) * 48 + 2 * 48 + 2 * block_count(48, tables28(3)) + 8 * 48 +
                8 * 48 * 48 + 4 * block_count(96, tables28(6)) + 2 * 96 +
                97 * 10);
  EXPECT_EQ(count("swin-tiny28"), 529'288);
  EXPECT_EQ(count("swin-tiny32"), 667'406);
  EXPECT_EQ(count("swin-v2-tiny28"), 548'632);
  EXPECT_EQ(count("swin-v2-tiny32"), 696'014);
  // logit_scale and the mlp: H (1 + 512) + 3 * 512.
  const auto mlp = [](std::int64_t heads) { return 513 * heads + 3 * 512; };
  EXPECT_EQ(count("swin-v2-tiny32"),
            (12 + 1) * 32 + 2 * 32 + 2 * block_count(32, mlp(2)) + 4 * 32 +
                8 * 32 * 32 + 4 * block_count(64, mlp(4)) + 4 * 64 +
                8 * 64 * 64 + 2 * block_count(128, mlp(8)) + 2 * 128 +
                129 * 10);
}

TEST(Swin, KnowsItsNames) {
  EXPECT_EQ(swin_names(),
            (std::vector<std::string>{
                "swin-tiny", "swin-small", "swin-base", "swin-v2-tiny",
                "swin-v2-small", "swin-v2-base", "swin-tiny28", "swin-tiny32",
                "swin-v2-tiny28", "swin-v2-tiny32"}));
  expect_error([] { swin_options("huge"); },
               "[swin_options] name \"huge\" is none of swin-tiny, "
               "swin-small, swin-base, swin-v2-tiny, swin-v2-small, "
               "swin-v2-base, swin-tiny28, swin-tiny32, swin-v2-tiny28, "
               "swin-v2-tiny32");
}

// The sizes that docs/models.md says they are for.
TEST(Swin, SmallOnesFillTheirWindows) {
  for (const auto& [name, channels, side, tokens] :
       {std::tuple{"swin-tiny28", 1, 28, 49},
        {"swin-tiny32", 3, 32, 16},
        {"swin-v2-tiny28", 1, 28, 49},
        {"swin-v2-tiny32", 3, 32, 16}}) {
    SCOPED_TRACE(name);
    Swin model(swin_options(name).activation("x^3/sqrt(N)"));
    EXPECT_EQ(model->tokens(), tokens);
    const auto images = torch::randn({2, channels, side, side});
    EXPECT_EQ(model->forward(images).sizes(),
              (std::vector<std::int64_t>{2, 10}));
    const auto& o = model->options;
    std::int64_t map = side / o.patch_size();
    for (std::size_t s = 0; s < o.depths().size(); ++s, map /= 2) {
      EXPECT_EQ(map % o.window(), 0) << s;
    }
  }
}

TEST(Swin, MergesFourTokensIntoOne) {
  torch::manual_seed(1);
  for (const bool post_norm : {false, true}) {
    PatchMerging merging(PatchMergingOptions(3).post_norm(post_norm));
    merging->to(torch::kDouble);
    {
      const torch::NoGradGuard no_grad;
      merging->norm->weight.normal_();
      merging->norm->bias.normal_();
    }
    const auto x = test::random_rows({2, 5, 4, 3});
    const auto y = merging->forward(x);
    ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{2, 3, 2, 6}));
    const auto merged = [&](const std::vector<torch::Tensor>& tokens) {
      const auto all = torch::cat(tokens, -1);
      return post_norm
                 ? merging->norm->forward(merging->reduction->forward(all))
                 : merging->reduction->forward(merging->norm->forward(all));
    };
    const auto at = [&](std::int64_t r, std::int64_t c) {
      return x.select(1, r).select(1, c);
    };
    const auto none = torch::zeros_like(at(0, 0));
    EXPECT_SAME(y.select(1, 1).select(1, 1),
                merged({at(2, 2), at(3, 2), at(2, 3), at(3, 3)}));
    EXPECT_SAME(y.select(1, 2).select(1, 0),
                merged({at(4, 0), none, at(4, 1), none}));
  }
}

// Where the norms are, which blocks are shifted, and what the head reads.
TEST(Swin, IsItsBlocks) {
  torch::manual_seed(2);
  for (const std::int64_t version : {1, 2}) {
    Swin model(small(version));
    model->to(torch::kDouble);
    const auto images = torch::randn({2, 3, 18, 27}, torch::kDouble);
    auto x = model->patch_norm->forward(
        model->patches->proj->forward(images).permute({0, 2, 3, 1}));
    ASSERT_EQ(x.size(1), 9);
    ASSERT_EQ(x.size(2), 13);
    for (std::size_t s = 0; s < 2; ++s) {
      auto& blocks = model->stages->at<torch::nn::ModuleListImpl>(s);
      for (std::size_t i = 0; i < 2; ++i) {
        auto& b = blocks.at<SwinBlockImpl>(i);
        EXPECT_EQ(b.attention->options.shift(), i == 0 ? 0 : 2);
        EXPECT_EQ(b.attention->stage, static_cast<std::int64_t>(s));
        if (version == 1) {
          x = x + b.attention->forward(b.norm1->forward(x));
          x = x + b.mlp->forward(b.norm2->forward(x));
        } else {
          x = x + b.norm1->forward(b.attention->forward(x));
          x = x + b.norm2->forward(b.mlp->forward(x));
        }
      }
      if (s == 0) x = model->merging->at<PatchMergingImpl>(0).forward(x);
    }
    const auto features = model->norm->forward(x).mean({1, 2});
    EXPECT_SAME(model->features(images), features);
    EXPECT_SAME(model->forward(images), model->head->forward(features));
  }
}

// A factor of each channel, last of each branch: behind the norm, where that is
// the branch's end.
TEST(Swin, LayerScalesAreTheLastOfEachBranch) {
  torch::manual_seed(7);
  for (const std::int64_t version : {1, 2}) {
    Swin model(small(version).layer_scale(0.1));
    model->to(torch::kDouble);
    const torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters()) {
      if (item.key().find("layer_scale") == std::string::npos) continue;
      EXPECT_TRUE(item->eq(double{0.1F}).all().item<bool>()) << item.key();
      item->normal_();
    }
    auto& b =
        model->stages->at<torch::nn::ModuleListImpl>(1).at<SwinBlockImpl>(1);
    const auto x = test::random_rows({2, 8, 8, 32});
    const auto branch = [&](auto& inner, auto& norm, const torch::Tensor& in) {
      return version == 1 ? inner->forward(norm->forward(in))
                          : norm->forward(inner->forward(in));
    };
    auto y = x + branch(b.attention, b.norm1, x) * b.layer_scale1->weight;
    y = y + branch(b.mlp, b.norm2, y) * b.layer_scale2->weight;
    EXPECT_SAME(b.forward(x), y);
  }
}

// Two for each block; without them the names are those of the published models.
TEST(Swin, HasLayerScalesOnlyIfAsked) {
  Swin plain(small()), scaled(small().layer_scale(0.1));
  EXPECT_EQ(test::parameter_count<Swin>(scaled->options),
            test::parameter_count<Swin>(plain->options) + 2 * 2 * (16 + 32));
  for (const auto& item : plain->named_parameters()) {
    EXPECT_EQ(item.key().find("layer_scale"), std::string::npos);
    EXPECT_TRUE(scaled->named_parameters().contains(item.key()));
  }
}

TEST(Swin, DropPathGrowsOverAllStages) {
  Swin model(
      SwinOptions(8, {2, 3}, {1, 2}).window(2).patch_size(2).drop_path(0.2));
  double expected = 0;
  for (const std::size_t s : {0U, 1U}) {
    for (const auto& block : model->stages->at<torch::nn::ModuleListImpl>(s)) {
      EXPECT_NEAR(block->as<SwinBlockImpl>()->drop_path->options.rate(),
                  expected, 1e-12);
      expected += 0.05;
    }
  }
  model->eval();
  const auto images = torch::randn({2, 3, 8, 8});
  EXPECT_TRUE(model->forward(images).equal(model->forward(images)));
  model->train();
  EXPECT_FALSE(model->forward(images).equal(model->forward(images)));
}

TEST(Swin, GradientsReachEveryParameter) {
  torch::manual_seed(3);
  for (const std::int64_t version : {1, 2}) {
    for (const char* formula : {"softmax", "x^3/sqrt(N)", "x^2/sqrt(N)"}) {
      SCOPED_TRACE(formula);
      Swin model(small(version).activation(formula).layer_scale(0.1));
      model->forward(torch::randn({2, 3, 16, 20})).square().sum().backward();
      expect_gradients(*model);
    }
  }
}

// Eight images of random pixels are learned by heart, from the matched start.
TEST(Swin, LossFalls) {
  for (const std::int64_t version : {1, 2}) {
    for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
      SCOPED_TRACE(std::string(formula) + ' ' + std::to_string(version));
      torch::manual_seed(4);
      Swin model(small(version).activation(formula).initialisation("xavier"));
      const auto images = torch::randn({8, 3, 16, 16});
      const auto labels = torch::arange(8, torch::kLong).remainder(5);
      nn::match_start(*model, [&] { model->forward(images); });
      torch::optim::AdamW optimiser(model->parameters(),
                                    torch::optim::AdamWOptions(3e-3));
      double first = 0, last = 0;
      for (int step = 0; step < 30; ++step) {
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
}

// Layer by layer, also under the shift mask, and on the batch that was seen.
TEST(Swin, StartsWhereSoftmaxDoes) {
  for (const std::int64_t version : {1, 2}) {
    for (const char* formula : {"x^3/sqrt(N)", "x^2/sqrt(N)"}) {
      SCOPED_TRACE(std::string(formula) + ' ' + std::to_string(version));
      torch::manual_seed(5);
      Swin model(small(version).activation(formula).initialisation("xavier"));
      const auto images = torch::randn({4, 3, 32, 32});
      const auto starts =
          nn::match_start(*model, [&] { model->forward(images); });
      ASSERT_EQ(starts.size(), 4U);
      const auto layers = nn::attention_layers(*model);
      ASSERT_EQ(layers.size(), 4U);
      for (nn::AttentionBase* layer : layers) {
        layer->watch_norms(true);
        layer->watch_other("softmax");
      }
      model->forward(images);
      for (std::size_t i = 0; i < 4; ++i) {
        SCOPED_TRACE(i);
        EXPECT_EQ(layers[i]->kind(), "window");
        EXPECT_EQ(layers[i]->stage, static_cast<std::int64_t>(i / 2));
        EXPECT_EQ(layers[i]->keys(), 16);
        const auto own = layers[i]->norms()->weight.mean(0);
        const auto other = layers[i]->other_norms()->weight.mean(0);
        ASSERT_EQ(own.size(0), i < 2 ? 2 : 4);
        for (std::int64_t h = 0; h < own.size(0); ++h) {
          const auto& head = starts[i][static_cast<std::size_t>(h)];
          EXPECT_LT(head.gain, 1);
          EXPECT_NEAR(own[h].item<double>() / other[h].item<double>(), 1, 1e-3);
        }
      }
    }
  }
}

TEST(Swin, ClonesAreApart) {
  torch::manual_seed(6);
  Swin model(small());
  const auto images = torch::randn({2, 3, 16, 16});
  const auto before = model->forward(images);
  const auto clone = std::dynamic_pointer_cast<SwinImpl>(model->clone());
  ASSERT_NE(clone, nullptr);
  EXPECT_TRUE(clone->forward(images).equal(before));
  EXPECT_EQ(nn::attention_layers(*clone).back()->stage, 1);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : clone->parameters()) parameter.zero_();
  EXPECT_EQ(clone->forward(images).abs().max().item<float>(), 0);
  EXPECT_TRUE(model->forward(images).equal(before));
}

TEST(Swin, Refuses) {
  const auto refuse = [](const SwinOptions& options,
                         const std::string& message) {
    expect_error([&] { const Swin model(options); }, message);
  };
  refuse(SwinOptions(8, {}, {}), "[Swin] depths are empty");
  refuse(SwinOptions(8, {2, 2}, {1}), "[Swin] depths of 2 stages, heads of 1");
  refuse(SwinOptions(8, {2, 0}, {1, 2}), "[Swin] depth 0 < 1");
  refuse(small().version(3), "[Swin] version 3 is neither 1 nor 2");
  refuse(small().classes(0), "[Swin] classes 0 < 1");
  refuse(small().dropout(1), "[Swin] dropout 1 is not in [0, 1)");
  refuse(small().drop_path(-1), "[Swin] drop_path -1 is not in [0, 1)");
  refuse(small().heads({2, 3}),
         "[WindowAttention] dim 32 is not a multiple of heads 3");
  refuse(small().window(1), "[WindowAttention] window 1 < 2");
  refuse(small().patch_size(0), "[PatchEmbedding] patch_size 0 < 1");
  refuse(small().mlp_ratio(0), "[Mlp] hidden 0 < 1");
  Swin model(small());
  const auto refuse_images = [&](torch::IntArrayRef size,
                                 const std::string& message) {
    expect_error([&] { model->forward(torch::randn(size)); },
                 "[Swin] images of " + message);
  };
  refuse_images({2, 1, 16, 16},
                "size [2, 1, 16, 16] are not [B, 3, height, width]");
  refuse_images({3, 16, 16}, "size [3, 16, 16] are not [B, 3, height, width]");
  refuse_images({2, 3, 16, 7},
                "16 x 7 pixels are 8 x 3 patches, fewer than a window, 4 x 4");
  refuse_images({2, 3, 1, 16},
                "1 x 16 pixels are 0 x 8 patches, fewer than a window, 4 x 4");
}

std::vector<std::string> problems_of(Swin& model, const NamedTensors& tensors) {
  try {
    load_torchvision(model, tensors);
  } catch (const WeightsError& error) {
    return error.problems();
  }
  return {};
}

// Of a model, as torchvision has it.
NamedTensors torchvision_state(Swin& model) {
  NamedTensors theirs;
  for (const auto& [name, tensor] : state_of(*model)) {
    std::string key = name;
    const auto replace = [&](const std::string& from, const std::string& to) {
      const auto at = key.find(from);
      if (at != std::string::npos) key.replace(at, from.size(), to);
    };
    replace("stages.0.", "features.1.");
    replace("stages.1.", "features.3.");
    replace("merging.0.", "features.2.");
    replace("patches.proj", "features.0.0");
    replace("patch_norm", "features.0.2");
    replace("attention.in_proj_", "attn.qkv.");
    replace("attention.out_proj", "attn.proj");
    replace("attention.bias_table", "attn.relative_position_bias_table");
    replace("attention.logit_scale", "attn.logit_scale");
    replace("attention.bias_fc1", "attn.cpb_mlp.0");
    replace("attention.bias_fc2", "attn.cpb_mlp.2");
    replace("mlp.fc1", "mlp.0");
    replace("mlp.fc2", "mlp.3");
    theirs[key] = tensor.clone();
  }
  return theirs;
}

TEST(Swin, ComparesWhatItMakesItself) {
  for (const std::int64_t version : {1, 2}) {
    Swin model(small(version)), other(small(version));
    NamedTensors tensors = torchvision_state(other);
    EXPECT_TRUE(problems_of(model, tensors).empty());
    EXPECT_TRUE(model->head->weight.equal(other->head->weight));
    const std::string attn = "features.3.1.attn.";
    tensors[attn + "relative_position_index"] = nn::offset_index(4);
    EXPECT_TRUE(problems_of(model, tensors).empty());
    tensors[attn + "relative_position_index"] =
        nn::offset_index(4).view({16, 16});
    EXPECT_TRUE(problems_of(model, tensors).empty());
    tensors[attn + "relative_position_index"] = nn::offset_index(4).flip(0);
    EXPECT_EQ(problems_of(model, tensors),
              (std::vector<std::string>{
                  "unlike: features.3.1.attn.relative_position_index [256] "
                  "does not hold what this model has there"}));
    tensors[attn + "relative_position_index"] = nn::offset_index(3);
    EXPECT_EQ(problems_of(model, tensors).size(), 1U);
    tensors[attn + "relative_position_index"] =
        nn::offset_index(4).to(torch::kFloat);
    EXPECT_EQ(problems_of(model, tensors).size(), 1U);
    tensors.erase(attn + "relative_position_index");
    tensors[attn + "relative_coords_table"] =
        nn::log_offsets(4).to(torch::kFloat).view({1, 7, 7, 2});
    EXPECT_EQ(problems_of(model, tensors).size(), version == 1 ? 1U : 0U);
    tensors[attn + "relative_coords_table"] += 1e-3;
    EXPECT_EQ(problems_of(model, tensors).size(), 1U);
  }
}

TEST(Swin, RefusesCheckpointsOfOthers) {
  Swin first(small()), second(small(2)), scaled(small().layer_scale(0.1));
  const auto lacks = problems_of(scaled, torchvision_state(first));
  ASSERT_EQ(lacks.size(), 4U * 2);
  EXPECT_EQ(lacks[0],
            "no source: nothing is mapped to stages.0.0.layer_scale1.weight");
  // Tables against mlps: each misses the other's.
  const auto problems = problems_of(second, torchvision_state(first));
  EXPECT_EQ(problems.size(), 4U * 5 + 2);  // and the norm of the merging
  ViT vit(ViTOptions(16, 2, 2).image_size(16).patch_size(2).classes(5));
  EXPECT_GT(problems_of(first, state_of(*vit)).size(), 50U);
  EXPECT_THROW(load_timm(first, torchvision_state(first)), WeightsError);
  EXPECT_THROW(load_timm(second, torchvision_state(second)), WeightsError);
}

}  // namespace swin_test
}  // namespace polyattn::models
