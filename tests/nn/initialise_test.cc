// Initialisation by name: the deviation of every kind of parameter.
#include "polyattn/nn/initialise.h"

#include <torch/nn/modules/container/modulelist.h>

#include <cmath>

#include "nn/support.h"
#include "polyattn/nn/block.h"
#include "polyattn/nn/embedding.h"

namespace polyattn::nn {
namespace initialise_test {

using test::expect_error;

constexpr std::int64_t kDim = 64;

// A part of every kind; two blocks.
class PartsImpl : public torch::nn::Module {
 public:
  PartsImpl() {
    tokens = register_module("tokens", TokenEmbedding(TableOptions(100, kDim)));
    positions =
        register_module("positions", PositionEmbedding(TableOptions(90, kDim)));
    class_token = register_module("class_token", ClassToken(kDim));
    patches = register_module("patches",
                              PatchEmbedding(PatchEmbeddingOptions(4, kDim)));
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < 2; ++i) blocks->push_back(Block(options()));
    head = register_module("head", torch::nn::Linear(kDim, 50));
  }

  BlockImpl& block() { return blocks->at<BlockImpl>(0); }

  TokenEmbedding tokens{nullptr};
  PositionEmbedding positions{nullptr};
  ClassToken class_token{nullptr};
  PatchEmbedding patches{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  torch::nn::Linear head{nullptr};

 private:
  static BlockOptions options() {
    auto block = BlockOptions(kDim, 4).layer_scale(0.1);
    block.attention()
        .kv_heads(2)
        .activation("x^3/sqrt(N)")
        .qk_norm("rms")
        .learned_scale(true)
        .learned_coefficients("shared")
        .output_norm("rms")
        .output_gate(true)
        .short_conv(4);
    return block;
  }
};

TORCH_MODULE(Parts);

// Every parameter is spoiled first, so that one that is not set is seen.
Parts made(const InitialiseOptions& options) {
  Parts parts;
  const torch::NoGradGuard no_grad;
  for (auto& parameter : parts->parameters()) parameter.fill_(7);
  initialise(*parts, options);
  return parts;
}

// The standard deviation of n values is known to about 1/sqrt(2n) of it: the
// smallest matrix here has 2048, so 5 deviations are 8 %.
void expect_std(const torch::Tensor& t, double expected, const char* what) {
  ASSERT_GE(t.numel(), 2048) << what;
  const double deviation = t.square().mean().sqrt().item<double>();
  EXPECT_NEAR(deviation / expected, 1, 0.08) << what;
  EXPECT_LE(std::abs(t.mean().item<double>()),
            5 * expected / std::sqrt(static_cast<double>(t.numel())))
      << what;
}

void expect_all(const torch::Tensor& t, double value) {
  EXPECT_TRUE(
      t.eq(torch::tensor(value).to(t.scalar_type())).all().item<bool>());
}

// What every scheme sets to the same.
void expect_constants(PartsImpl& parts) {
  BlockImpl& block = parts.block();
  for (Norm norm : {block.norm1, block.norm2}) {
    expect_all(norm->weight, 1);
    expect_all(norm->bias, 0);
  }
  expect_all(block.layer_scale1->weight, 0.1);
  expect_all(block.attention->q_norm->weight, 1);
  expect_all(block.attention->k_norm->weight, 1);
  expect_all(block.attention->output_norm->weight, 1);
  const auto taps = block.attention->short_conv->weight;
  expect_all(taps.narrow(2, 0, 3), 0);
  expect_all(taps.narrow(2, 3, 1), 1);
  expect_all(block.attention->score_scale, 0.25);
  EXPECT_TRUE(block.attention->coefficients.equal(
      torch::tensor({0.0F, 0.0F, 0.0F, 1.0F})));
}

struct Deviations {
  double q, v, out, gate, fc1, fc2, convolution, head, token, position;
};

void expect_deviations(PartsImpl& parts, const Deviations& d) {
  BlockImpl& block = parts.block();
  const auto in =
      block.attention->in_proj_weight.split_with_sizes({64, 32, 32});
  expect_std(in[0], d.q, "q");
  expect_std(in[1], d.v, "k");
  expect_std(in[2], d.v, "v");
  expect_std(block.attention->out_proj->weight, d.out, "out_proj");
  expect_std(block.attention->gate_proj->weight, d.gate, "gate_proj");
  expect_std(block.mlp->fc1->weight, d.fc1, "fc1");
  expect_std(block.mlp->fc2->weight, d.fc2, "fc2");
  expect_std(parts.patches->proj->weight, d.convolution, "patches");
  expect_std(parts.head->weight, d.head, "head");
  expect_std(parts.tokens->weight, d.token, "tokens");
  expect_std(parts.positions->weight, d.position, "positions");
}

// The standard deviation of a uniform distribution within +-bound.
double uniform(double bound) { return bound / std::sqrt(3.0); }

// Of a normal distribution that is cut at two standard deviations.
const double kCut = 0.8796;

double glorot(double in, double out) { return std::sqrt(2 / (in + out)); }

TEST(Initialise, Torch) {
  torch::manual_seed(1);
  Parts parts = made({"torch"});
  const double linear = uniform(1 / std::sqrt(64.0));
  const double in = glorot(64, 128);
  expect_deviations(*parts, {.q = in,
                             .v = in,
                             .out = linear,
                             .gate = linear,
                             .fc1 = linear,
                             .fc2 = uniform(1 / std::sqrt(256.0)),
                             .convolution = uniform(1 / std::sqrt(48.0)),
                             .head = linear,
                             .token = 1,
                             .position = 0.02});
  expect_all(parts->block().attention->in_proj_bias, 0);
  expect_all(parts->block().attention->out_proj->bias, 0);
  expect_all(parts->block().attention->gate_proj->bias, 0);
  expect_all(parts->class_token->weight, 0);
  const auto bias = parts->block().mlp->fc1->bias;
  EXPECT_LE(bias.abs().max().item<double>(), 0.125);
  EXPECT_GT(bias.abs().max().item<double>(), 0.1);
}

// The modules begin as "torch" says.
TEST(Initialise, TorchIsWhatModulesBeginWith) {
  torch::manual_seed(2);
  Parts fresh;
  Parts parts = made({"torch"});
  const auto expected = parts->named_parameters();
  for (const auto& item : fresh->named_parameters()) {
    SCOPED_TRACE(item.key());
    const auto& a = item.value();
    const auto& b = expected[item.key()];
    const double n = static_cast<double>(a.numel());
    const double scale = b.square().mean().sqrt().item<double>();
    const double other = a.square().mean().sqrt().item<double>();
    EXPECT_LE(std::abs(other - scale), 8 / std::sqrt(2 * n) * scale);
  }
}

TEST(Initialise, Vit) {
  torch::manual_seed(3);
  Parts parts = made({"vit"});
  const double d = 0.02 * kCut;
  expect_deviations(*parts, {.q = d,
                             .v = d,
                             .out = d,
                             .gate = d,
                             .fc1 = d,
                             .fc2 = d,
                             .convolution = kCut / std::sqrt(48.0),
                             .head = d,
                             .token = d,
                             .position = d});
  for (const auto& item : parts->named_parameters()) {
    if (item.key().ends_with("bias")) expect_all(item.value(), 0);
  }
  const double most = parts->tokens->weight.abs().max().item<double>();
  EXPECT_LE(most, 0.04F);
  EXPECT_GT(most, 0.038);
  EXPECT_LE(parts->class_token->weight.abs().max().item<double>(), 6e-6);
  EXPECT_GT(parts->class_token->weight.abs().max().item<double>(), 1e-6);
}

TEST(Initialise, Gpt2) {
  torch::manual_seed(4);
  Parts parts = made({"gpt2"});
  expect_deviations(*parts, {.q = 0.02,
                             .v = 0.02,
                             .out = 0.01,  // two layers: sqrt(2 * 2)
                             .gate = 0.02,
                             .fc1 = 0.02,
                             .fc2 = 0.01,
                             .convolution = 0.02,
                             .head = 0.02,
                             .token = 0.02,
                             .position = 0.02});
  for (const auto& item : parts->named_parameters()) {
    if (item.key().ends_with("bias")) expect_all(item.value(), 0);
  }
}

TEST(Initialise, Xavier) {
  torch::manual_seed(5);
  Parts parts = made({"xavier"});
  expect_deviations(*parts, {.q = glorot(64, 64),
                             .v = glorot(64, 32),
                             .out = glorot(64, 64),
                             .gate = glorot(64, 64),
                             .fc1 = glorot(64, 256),
                             .fc2 = glorot(256, 64),
                             .convolution = glorot(48, 64 * 16),
                             .head = glorot(64, 50),
                             .token = 0.02,
                             .position = 0.02});
  expect_all(parts->class_token->weight, 0);
}

// PINNsformer's: torch's, but for what is Linear.
TEST(Initialise, Pinn) {
  torch::manual_seed(5);
  Parts parts = made({"pinn"});
  expect_deviations(*parts, {.q = glorot(64, 128),
                             .v = glorot(64, 128),
                             .out = glorot(64, 64),
                             .gate = glorot(64, 64),
                             .fc1 = glorot(64, 256),
                             .fc2 = glorot(256, 64),
                             .convolution = uniform(1 / std::sqrt(48.0)),
                             .head = glorot(64, 50),
                             .token = 1,
                             .position = 0.02});
  const auto& attention = parts->block().attention;
  expect_all(attention->in_proj_bias, 0);
  expect_all(attention->out_proj->bias, 0.01F);
  expect_all(parts->head->bias, 0.01F);
}

TEST(Initialise, SetsWhatIsNotDrawn) {
  for (const std::string& name : initialisation_names()) {
    Parts parts = made({name});
    expect_constants(*parts);
  }
}

TEST(Initialise, GainIsOfQueriesAndKeys) {
  const auto weight = [](double gain) {
    Parts parts = made(InitialiseOptions("xavier").qk_gain(gain).seed(6));
    return parts->block().attention->in_proj_weight.detach().clone();
  };
  const auto one = weight(1), four = weight(4);
  EXPECT_TRUE(four.narrow(0, 0, 96).equal(4 * one.narrow(0, 0, 96)));
  EXPECT_TRUE(four.narrow(0, 96, 32).equal(one.narrow(0, 96, 32)));
  expect_error([] { made(InitialiseOptions("vit").qk_gain(NAN)); },
               "[initialise] qk_gain nan is not finite");
}

TEST(Initialise, SeedDecides) {
  const auto values = [](const InitialiseOptions& options) {
    Parts parts = made(options);
    std::vector<torch::Tensor> list;
    for (const auto& p : parts->parameters()) list.push_back(p.flatten());
    return torch::cat(list).detach();
  };
  for (const std::string& name : initialisation_names()) {
    SCOPED_TRACE(name);
    torch::manual_seed(7);
    // Parts draws before initialise() does: the same each time.
    const auto first = values({name});
    const auto second = values({name});
    torch::manual_seed(7);
    EXPECT_TRUE(values({name}).equal(first));
    EXPECT_FALSE(second.equal(first));
    const auto seeded = values(InitialiseOptions(name).seed(8));
    EXPECT_TRUE(values(InitialiseOptions(name).seed(8)).equal(seeded));
    EXPECT_FALSE(values(InitialiseOptions(name).seed(9)).equal(seeded));
  }
}

TEST(Initialise, TypeDoesNotMatter) {
  Parts parts, wide;
  wide->to(torch::kDouble);
  initialise(*parts, InitialiseOptions("vit").seed(10));
  initialise(*wide, InitialiseOptions("vit").seed(10));
  EXPECT_TRUE(wide->head->weight.equal(parts->head->weight.to(torch::kDouble)));
}

TEST(Initialise, KnowsItsNames) {
  EXPECT_EQ(
      initialisation_names(),
      (std::vector<std::string>{"torch", "vit", "gpt2", "xavier", "pinn"}));
  Parts parts;
  expect_error([&] { initialise(*parts, {"he"}); },
               "[initialise] name \"he\" is none of torch, vit, gpt2, xavier, "
               "pinn");
}

}  // namespace initialise_test
}  // namespace polyattn::nn
