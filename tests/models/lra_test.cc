// Nystromformer's models for Long Range Arena: sizes, names, what is refused.
// tests/models/public_weights_test.cc compares them with a twin in Python.
#include "polyattn/models/lra.h"

#include <cmath>
#include <map>

#include "nn/support.h"

namespace polyattn::models {
namespace lra_test {

using test::expect_error;

std::int64_t parameters(const std::string& task) {
  const SequenceClassifier model(lra_options(task));
  std::int64_t count = 0;
  for (const auto& p : model->parameters()) count += p.numel();
  return count;
}

// A model that takes no time, and its weights by Nystromformer's names.
SequenceClassifierOptions small(std::int64_t towers = 1) {
  SequenceClassifierOptions options(8, 1, 2);
  options.vocabulary(10).context(6).classes(3).towers(towers).head("mlp");
  options.pooling("padded").mask_zeros(true);
  options.block().mlp().hidden(12);
  return options;
}

NamedTensors weights(std::int64_t towers = 1) {
  std::map<std::string, std::vector<std::int64_t>> shapes = {
      {"model.embeddings.word_embeddings.weight", {10, 8}},
      {"model.embeddings.position_embeddings.weight", {6, 8}}};
  const auto linear = [&](const std::string& name, std::int64_t out,
                          std::int64_t in) {
    shapes[name + ".weight"] = {out, in};
    shapes[name + ".bias"] = {out};
  };
  for (const std::string norm :
       {"transformer_0.norm1", "transformer_0.norm2", "norm"}) {
    shapes["model." + norm + ".weight"] = {8};
    shapes["model." + norm + ".bias"] = {8};
  }
  for (const std::string part : {"W_q", "W_k", "W_v", "ff"}) {
    linear("model.transformer_0.mha." + part, 8, 8);
  }
  linear("model.transformer_0.mlpblock.0", 12, 8);
  linear("model.transformer_0.mlpblock.3", 8, 12);
  linear("seq_classifer.mlpblock.0", 12, towers == 2 ? 32 : 8);
  linear("seq_classifer.mlpblock.2", 3, 12);
  NamedTensors tensors;
  for (const auto& [name, shape] : shapes) tensors[name] = torch::randn(shape);
  return tensors;
}

TEST(Lra, HasTheSizesOfThePublishedModels) {
  EXPECT_EQ(parameters("listops"), 209802);
  EXPECT_EQ(parameters("text"), 370562);
  EXPECT_EQ(parameters("retrieval"), 395138);
  EXPECT_EQ(parameters("image"), 174986);
  EXPECT_EQ(parameters("pathfinder"), 173954);
}

TEST(Lra, KnowsItsNames) {
  EXPECT_EQ(lra_names(),
            (std::vector<std::string>{"listops", "text", "retrieval", "image",
                                      "pathfinder"}));
  expect_error([] { lra_options("cifar"); },
               "[lra_options] name \"cifar\" is none of listops, text, "
               "retrieval, image, pathfinder");
  const auto options = lra_options("retrieval");
  EXPECT_EQ(options.towers(), 2);
  EXPECT_EQ(options.block().attention().dropout(), 0.1);
  EXPECT_EQ(options.block().mlp().dropout(), 0.1);
  EXPECT_EQ(options.dropout(), 0.1);
}

TEST(LoadLra, TakesEveryTensor) {
  for (const std::int64_t towers : {1, 2}) {
    SequenceClassifier model(small(towers));
    const NamedTensors tensors = weights(towers);
    load_lra(model, tensors);
    const NamedTensors state = state_of(*model);
    const auto& joint = state.at("blocks.0.attention.in_proj_weight");
    for (const auto& [name, first] : {std::pair("q", 0), {"k", 8}, {"v", 16}}) {
      EXPECT_TRUE(
          joint.narrow(0, first, 8)
              .equal(tensors.at(std::string("model.transformer_0.mha.W_") +
                                name + ".weight")));
    }
    EXPECT_TRUE(state.at("head_hidden.weight")
                    .equal(tensors.at("seq_classifer.mlpblock.0.weight")));
    EXPECT_TRUE(state.at("head.bias")
                    .equal(tensors.at("seq_classifer.mlpblock.2.bias")));
  }
}

TEST(LoadLra, TakesTheConvolutionOfNystromAttention) {
  auto options = small();
  options.block().nystrom(nn::NystromOptions().landmarks(2).conv(3));
  SequenceClassifier model(options);
  NamedTensors tensors = weights();
  const std::string name = "model.transformer_0.mha.attn.conv.weight";
  EXPECT_THROW(load_lra(model, tensors), WeightsError);
  tensors[name] = torch::randn({2, 1, 3, 1});
  load_lra(model, tensors);
  EXPECT_TRUE(state_of(*model)
                  .at("blocks.0.attention.conv_weight")
                  .equal(tensors.at(name)));
}

TEST(LoadLra, RefusesWhatDoesNotFit) {
  SequenceClassifier model(small());
  const auto problems = [&](auto change) {
    NamedTensors tensors = weights();
    change(tensors);
    try {
      load_lra(model, tensors);
    } catch (const WeightsError& error) {
      return error.problems();
    }
    return std::vector<std::string>{};
  };
  EXPECT_TRUE(problems([](auto&) {}).empty());
  EXPECT_EQ(
      problems([](auto& t) { t.erase("model.norm.bias"); }),
      (std::vector<std::string>{"missing: model.norm.bias (for norm.bias)"}));
  // The projections are then left apart.
  EXPECT_EQ(problems([](auto& t) {
              t.erase("model.transformer_0.mha.W_k.bias");
            }).size(),
            3U);
  EXPECT_EQ(problems([](auto& t) {
              t["model.transformer_0.mha.W_v.weight"] = torch::randn({8, 7});
            }).size(),
            4U);
  // What Nystrom attention has beside these.
  EXPECT_EQ(problems([](auto& t) {
              t["model.transformer_0.mha.attn.conv.weight"] =
                  torch::randn({2, 1, 35, 1});
            }),
            (std::vector<std::string>{
                "extra: model.transformer_0.mha.attn.conv.weight [2, 1, 35, "
                "1]"}));
  const auto message = [](const SequenceClassifierOptions& options) {
    SequenceClassifier other(options);
    load_lra(other, weights());
  };
  expect_error([&] { message(small().head("linear")); },
               "[load_lra] the head of the model is \"linear\", that of "
               "Nystromformer \"mlp\"");
  expect_error([&] { message(small().pooling("mean").positions("rotary")); },
               "[load_lra] positions of the model are \"rotary\", those of "
               "Nystromformer \"learned\"");
  expect_error([&] { message(small().pooling("class")); },
               "[load_lra] pooling of the model is \"class\": Nystromformer "
               "has no class token");
}

}  // namespace lra_test
}  // namespace polyattn::models
