// States of modules: there and back, and every problem at once.
#include "polyattn/models/weights.h"

#include "nn/support.h"
#include "polyattn/models/gpt.h"
#include "polyattn/models/vit.h"

namespace polyattn::models {
namespace weights_test {

using test::expect_error;

// A module with a buffer, which is part of the state too.
class CounterImpl : public torch::nn::Module {
 public:
  CounterImpl() {
    linear = register_module("linear", torch::nn::Linear(2, 3));
    steps = register_buffer("steps", torch::zeros({1}, torch::kLong));
  }

  torch::nn::Linear linear{nullptr};
  torch::Tensor steps;
};

NamedTensors copy_of(const torch::nn::Module& module) {
  NamedTensors copy;
  for (const auto& [name, tensor] : state_of(module)) {
    copy[name] = tensor.clone();
  }
  return copy;
}

void expect_state(const torch::nn::Module& module,
                  const NamedTensors& expected) {
  const NamedTensors state = state_of(module);
  ASSERT_EQ(state.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    EXPECT_TRUE(state.at(name).equal(tensor)) << name;
  }
}

std::vector<std::string> problems_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const WeightsError& error) {
    return error.problems();
  }
  return {};
}

TEST(Weights, StateThereAndBack) {
  CounterImpl from, to;
  from.steps.fill_(12);
  const NamedTensors state = copy_of(from);
  EXPECT_EQ(state.size(), 3U);
  load_state(to, state);
  expect_state(to, state);
  EXPECT_EQ(to.steps.item<std::int64_t>(), 12);
  EXPECT_TRUE(to.linear->weight.requires_grad());
  // Not shared with what it was read from.
  state.at("linear.weight").zero_();
  EXPECT_GT(to.linear->weight.abs().max().item<float>(), 0);
}

TEST(Weights, ConvertsFloatingPoint) {
  CounterImpl module;
  NamedTensors state = copy_of(module);
  state["linear.weight"] = torch::full({3, 2}, 1.5, torch::kHalf);
  load_state(module, state);
  EXPECT_EQ(module.linear->weight.scalar_type(), torch::kFloat);
  EXPECT_TRUE(module.linear->weight.eq(1.5).all().item<bool>());
}

TEST(Weights, ReportsAllProblemsAndWritesNothing) {
  CounterImpl module;
  const NamedTensors before = copy_of(module);
  NamedTensors tensors = copy_of(module);
  for (auto& [name, tensor] : tensors) tensor = tensor + 1;
  load_state(module, tensors);  // it would have been possible
  expect_state(module, tensors);
  load_state(module, before);
  tensors.erase("linear.bias");
  tensors["linear.weight"] = torch::zeros({2, 3});
  tensors["steps"] = torch::zeros({1});
  tensors["more"] = torch::zeros({4});
  try {
    load_state(module, tensors);
    FAIL();
  } catch (const WeightsError& error) {
    EXPECT_STREQ(error.what(),
                 "[load_state] the tensors do not fit the module, 4 problems:\n"
                 "  missing: linear.bias\n"
                 "  misshapen: linear.weight is [2, 3], not [3, 2]\n"
                 "  wrong type: steps is Float, not Long\n"
                 "  extra: more [4]");
    EXPECT_EQ(error.problems().size(), 4U);
  }
  expect_state(module, before);
}

TEST(Weights, MapsLayouts) {
  torch::nn::Linear linear(2, 3);
  const auto weight = torch::randn({2, 3}), bias = torch::randn({1, 3});
  const Mapping mapping{.tensors = {{"w", "weight", Layout::kTransposed},
                                    {"b", "bias", Layout::kLeadingOne}},
                        .ignored = {"mask"}};
  load_mapped("op", *linear,
              {{"w", weight}, {"b", bias}, {"mask", torch::ones(1)}}, mapping);
  EXPECT_TRUE(linear->weight.equal(weight.t()));
  EXPECT_TRUE(linear->bias.equal(bias[0]));
  EXPECT_EQ(problems_of([&] {
              load_mapped("op", *linear, {{"w", weight.t()}, {"b", bias[0]}},
                          mapping);
            }),
            (std::vector<std::string>{"misshapen: w is [3, 2], not [2, 3]",
                                      "misshapen: b is [3], not [1, 3]"}));
}

TEST(Weights, MappingMustCoverTheModule) {
  torch::nn::Linear linear(torch::nn::LinearOptions(2, 3));
  const auto weight = torch::randn({3, 2});
  EXPECT_EQ(problems_of([&] {
              load_mapped("op", *linear, {{"w", weight}, {"g", weight}},
                          {.tensors = {{"w", "weight"}, {"g", "gate"}}});
            }),
            (std::vector<std::string>{"no place: g (the module has no gate)",
                                      "no source: nothing is mapped to bias"}));
}

TEST(Weights, PublicModelsWithoutLearnedPartsFit) {
  auto options = ViTOptions(8, 1, 2).image_size(8).patch_size(4).classes(3);
  options.activation("x^3/sqrt(N)");
  options.block()
      .attention()
      .learned_scale(true)
      .learned_coefficients("head")
      .short_conv(3);
  ViT model(options);
  NamedTensors tensors;
  const auto problems = problems_of([&] { load_torchvision(model, tensors); });
  // Two for patches, norm and head, two for class token and positions, twelve
  // for the block; score_scale, coefficients and short_conv are not asked for.
  EXPECT_EQ(problems.size(), 3 * 2 + 2 + 12U);
  EXPECT_EQ(problems.front(), "missing: class_token (for class_token.weight)");
  options.block().layer_scale(0.1);
  ViT scaled(options);
  const auto more = problems_of([&] { load_torchvision(scaled, tensors); });
  ASSERT_EQ(more.size(), problems.size() + 2);
  EXPECT_EQ(more.back(),
            "no source: nothing is mapped to blocks.0.layer_scale2.weight");
}

TEST(Weights, TiedGptTakesOneTable) {
  Gpt model(GptOptions(8, 1, 2).vocabulary(5).context(4));
  const NamedTensors before = copy_of(*model);
  const NamedTensors tensors = {{"wte.weight", torch::zeros({5, 8})},
                                {"lm_head.weight", torch::ones({5, 8})}};
  const auto problems = problems_of([&] { load_gpt2(model, tensors); });
  EXPECT_EQ(problems.back(),
            "unequal: lm_head.weight and wte.weight, of which the module has "
            "one");
  EXPECT_EQ(problems.front(), "missing: wpe.weight (for positions.weight)");
  expect_state(*model, before);
  Gpt rotary(GptOptions(8, 1, 2).vocabulary(5).context(4).positions("rotary"));
  expect_error([&] { load_gpt2(rotary, tensors); },
               "[load_gpt2] positions of the model are \"rotary\", those of "
               "GPT-2 \"learned\"");
}

}  // namespace weights_test
}  // namespace polyattn::models
