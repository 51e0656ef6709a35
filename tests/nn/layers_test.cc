// The small modules, each against its definition: norms, stochastic depth, mlp,
// embeddings, rotary positions, block.
#include <ATen/Parallel.h>

#include <cmath>

#include "nn/support.h"
#include "polyattn/nn/block.h"
#include "polyattn/nn/embedding.h"

namespace polyattn::nn {
namespace layers_test {

using test::expect_error;
using test::expect_gradients;
using test::random_rows;

template <typename Module>
Module in_double(Module module) {
  module->to(torch::kDouble);
  return module;
}

TEST(Norm, IsItsFormula) {
  torch::manual_seed(1);
  const auto x = random_rows({3, 5, 8});
  const auto weight = random_rows({8}), bias = random_rows({8});
  const auto fill = [&](NormImpl& norm) {
    const torch::NoGradGuard no_grad;
    norm.weight.copy_(weight);
    if (norm.bias.defined()) norm.bias.copy_(bias);
  };
  auto layer = in_double(Norm(NormOptions(8).eps(0.1)));
  fill(*layer);
  const auto centred = x - x.mean(-1, true);
  const auto expected =
      centred / (centred.square().mean(-1, true) + 0.1).sqrt() * weight;
  EXPECT_SAME(layer->forward(x), expected + bias);
  auto without = in_double(Norm(NormOptions(8).eps(0.1).bias(false)));
  fill(*without);
  EXPECT_FALSE(without->bias.defined());
  EXPECT_SAME(without->forward(x), expected);
  auto rms = in_double(Norm(NormOptions(8).kind("rms").eps(0.1)));
  fill(*rms);
  EXPECT_EQ(rms->named_parameters().keys(), std::vector<std::string>{"weight"});
  EXPECT_SAME(rms->forward(x),
              x / (x.square().mean(-1, true) + 0.1).sqrt() * weight);
}

// f32 has a kernel of its own. Sums of up to 37 terms in a row: 2^-24 times
// some tens; the gradient of the weight adds up 600 rows.
TEST(Norm, RmsIsTheSameInF32) {
  torch::manual_seed(3);
  for (const std::int64_t dim : {1, 8, 37}) {
    Norm norm(NormOptions(dim).kind("rms").eps(0.1));
    {
      const torch::NoGradGuard no_grad;
      norm->weight.normal_();
    }
    const auto wide =
        in_double(Norm(std::dynamic_pointer_cast<NormImpl>(norm->clone())));
    // More rows than one task has, and not side by side.
    const auto x = torch::randn({300, dim, 2}).transpose(1, 2);
    const auto gradients = [](Norm own, const torch::Tensor& rows) {
      const auto leaf = rows.detach().requires_grad_();
      const auto y = own->forward(leaf);
      own->zero_grad();
      y.pow(3).sum().backward();
      return std::vector{y, leaf.grad(), own->weight.grad().clone()};
    };
    const auto expected = gradients(wide, x.to(torch::kDouble));
    const auto actual = gradients(norm, x);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_LE(test::relative_error(actual[i], expected[i]), 1e-5) << i;
    const int before = at::get_num_threads();
    at::set_num_threads(3);
    const auto again = gradients(norm, x);
    at::set_num_threads(before);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(again[i].equal(actual[i])) << i;
  }
}

// 300^2 is beyond f16.
TEST(Norm, OfLargeHalves) {
  Norm norm(NormOptions(8).kind("rms"));
  norm->to(torch::kHalf);
  const auto y = norm->forward(torch::full({1, 8}, 300.0, torch::kHalf));
  EXPECT_EQ(y.scalar_type(), torch::kHalf);
  EXPECT_TRUE(y.eq(1).all().item<bool>());
}

// As autocast hands them over: the result has the type of the rows.
TEST(Norm, OfRowsInLowerPrecisionThanTheWeight) {
  torch::manual_seed(2);
  for (const char* kind : {"layer", "rms"}) {
    Norm norm(NormOptions(8).kind(kind));
    const auto x = torch::randn({3, 8}).to(torch::kBFloat16);
    const auto y = norm->forward(x);
    EXPECT_EQ(y.scalar_type(), torch::kBFloat16) << kind;
    const auto wide = norm->forward(x.to(torch::kFloat));
    EXPECT_TRUE(torch::equal(y, wide.to(torch::kBFloat16))) << kind;
    y.sum().backward();
    EXPECT_EQ(norm->weight.grad().scalar_type(), torch::kFloat) << kind;
  }
}

TEST(Norm, Refuses) {
  expect_error([] { const Norm n(NormOptions(8).kind("batch")); },
               "[Norm] kind \"batch\" is none of layer, rms");
  expect_error([] { const Norm n(NormOptions(0)); }, "[Norm] dim 0 < 1");
  expect_error(
      [] {
        Norm(NormOptions(8))->forward(torch::ones({2, 7}));
      },
      "[Norm] x of size [2, 7] does not end in dim 8");
}

// Of 10000 samples the kept part is within 5 standard deviations,
// 5 sqrt(0.3 * 0.7 / 10000) = 0.023, of 0.7.
TEST(DropPath, DropsWholeSamples) {
  torch::manual_seed(2);
  DropPath drop(0.3);
  const auto x = torch::ones({10000, 2, 3}, torch::kDouble);
  const auto y = drop->forward(x).view({10000, 6});
  const auto kept = y.select(1, 0).ne(0);
  EXPECT_NEAR(kept.to(torch::kDouble).mean().item<double>(), 0.7, 0.023);
  EXPECT_TRUE(y.eq(y.narrow(1, 0, 1)).all().item<bool>());
  EXPECT_TRUE(y.index({kept}).eq(1 / 0.7).all().item<bool>());
  drop->eval();
  EXPECT_TRUE(drop->forward(x).equal(x));
  expect_error([] { const DropPath d(1.0); },
               "[DropPath] rate 1 is not in [0, 1)");
}

TEST(Mlp, IsItsFormula) {
  torch::manual_seed(3);
  const auto x = random_rows({2, 5, 8});
  auto mlp = in_double(Mlp(MlpOptions(8, 12)));
  const auto hidden = mlp->fc1->forward(x);
  EXPECT_SAME(mlp->forward(x),
              mlp->fc2->forward(0.5 * hidden *
                                (1 + torch::erf(hidden / std::sqrt(2.0)))));
  mlp->options.approximate("tanh");
  const auto inner = std::sqrt(2 / M_PI) * (hidden + 0.044715 * hidden.pow(3));
  EXPECT_SAME(mlp->forward(x),
              mlp->fc2->forward(0.5 * hidden * (1 + inner.tanh())));
  auto dropping = in_double(Mlp(MlpOptions(8, 12).dropout(0.5)));
  // The last dropout alone leaves half of the elements at zero.
  EXPECT_GT(dropping->forward(x).eq(0).sum().item<std::int64_t>(), 0);
  dropping->eval();
  EXPECT_EQ(dropping->forward(x).eq(0).sum().item<std::int64_t>(), 0);
  expect_error([] { const Mlp m(MlpOptions(8, 8).approximate("relu")); },
               "[Mlp] approximate \"relu\" is none of none, tanh");
  expect_error([] { const Mlp m(MlpOptions(0, 8)); }, "[Mlp] dim 0 < 1");
  expect_error([] { const Mlp m(MlpOptions(8, 0)); }, "[Mlp] hidden 0 < 1");
  expect_error([] { const Mlp m(MlpOptions(8, 8).dropout(2)); },
               "[Mlp] dropout 2 is not in [0, 1)");
}

TEST(PatchEmbedding, IsAProductWithEachPatch) {
  torch::manual_seed(4);
  auto patches =
      in_double(PatchEmbedding(PatchEmbeddingOptions(4, 6).channels(2)));
  const auto images = random_rows({3, 2, 8, 12});
  const auto y = patches->forward(images);
  ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{3, 6, 6}));
  // Row 4 is the patch in the second row and column of patches.
  const auto patch = images.narrow(2, 4, 4).narrow(3, 4, 4).flatten(1);
  EXPECT_SAME(y.select(1, 4),
              torch::linear(patch, patches->proj->weight.flatten(1),
                            patches->proj->bias));
  expect_error(
      [&] {
        patches->forward(random_rows({3, 3, 8, 8}));
      },
      "[PatchEmbedding] images of size [3, 3, 8, 8] are not [B, 2, "
      "height, width]");
  expect_error(
      [&] {
        patches->forward(random_rows({3, 2, 8, 9}));
      },
      "[PatchEmbedding] images of 8 x 9 are no multiple of patch_size "
      "4");
}

TEST(Embedding, ClassTokenIsTheFirstRow) {
  torch::manual_seed(5);
  auto token = in_double(ClassToken(4));
  {
    const torch::NoGradGuard no_grad;
    token->weight.normal_();
  }
  const auto x = random_rows({2, 3, 4});
  const auto y = token->forward(x);
  EXPECT_TRUE(y.narrow(1, 1, 3).equal(x));
  for (int b = 0; b < 2; ++b) EXPECT_TRUE(y[b][0].equal(token->weight[0][0]));
}

TEST(Embedding, PositionsAreAdded) {
  auto positions = in_double(PositionEmbedding(TableOptions(6, 4)));
  const auto x = random_rows({2, 3, 4});
  EXPECT_SAME(positions->forward(x), x + positions->weight.narrow(0, 0, 3));
  EXPECT_SAME(positions->forward(x, 3), x + positions->weight.narrow(0, 3, 3));
  expect_error([&] { positions->forward(x, 4); },
               "[PositionEmbedding] position 6 is beyond the 6 that were "
               "learned");
  expect_error([&] { positions->forward(x, -1); },
               "[PositionEmbedding] first position -1 < 0");
  expect_error(
      [&] {
        positions->forward(random_rows({2, 3, 5}));
      },
      "[PositionEmbedding] x of size [2, 3, 5] is not [B, N, 4]");
}

TEST(Embedding, TokensAreRows) {
  auto table = in_double(TokenEmbedding(TableOptions(6, 4)));
  const auto tokens = torch::tensor({{0, 5}, {3, 3}}, torch::kLong);
  const auto rows = table->forward(tokens);
  EXPECT_TRUE(rows[0][1].equal(table->weight[5]));
  EXPECT_TRUE(rows.equal(table->forward(tokens.to(torch::kInt))));
  EXPECT_SAME(table->logits(rows), torch::matmul(rows, table->weight.t()));
  expect_error([&] { table->forward(tokens + 1); },
               "[TokenEmbedding] token 6 is not in [0, 6)");
  expect_error([&] { table->forward(tokens - 2); },
               "[TokenEmbedding] token -2 is not in [0, 6)");
  expect_error(
      [&] {
        table->forward(torch::ones({1, 1}));
      },
      "[TokenEmbedding] tokens of type Float are neither i64 nor i32");
}

// q . k depends on the distance alone, and lengths are kept.
TEST(Rotary, KnowsTheDistanceOnly) {
  torch::manual_seed(6);
  Rotary rotary(RotaryOptions(), 8);
  const auto q = random_rows({1, 8}), k = random_rows({1, 8});
  const auto product = [&](std::int64_t i, std::int64_t j) {
    return (rotary.rotate(q, i) * rotary.rotate(k, j)).sum();
  };
  EXPECT_SAME(product(5, 2), product(903, 900));
  EXPECT_SAME(product(0, 0), (q * k).sum());
  EXPECT_GT(test::relative_error(product(5, 2), product(6, 2)), 1e-3);
  EXPECT_SAME(rotary.rotate(q, 77).norm(), q.norm());
}

TEST(Rotary, TurnsPairsByTheirAngle) {
  Rotary rotary(RotaryOptions().base(100).fraction(0.5), 8);
  const auto x = random_rows({3, 8});
  const auto y = rotary.rotate(x, 4);
  EXPECT_TRUE(y.narrow(1, 4, 4).equal(x.narrow(1, 4, 4)));
  for (int n = 0; n < 3; ++n) {
    for (int i = 0; i < 2; ++i) {
      const double angle = (4 + n) * std::pow(100, -i / 2.0);
      EXPECT_SAME(y[n][i],
                  x[n][i] * std::cos(angle) - x[n][i + 2] * std::sin(angle));
      EXPECT_SAME(y[n][i + 2],
                  x[n][i + 2] * std::cos(angle) + x[n][i] * std::sin(angle));
    }
  }
}

TEST(Rotary, TablesOfADecodedTextStopGrowing) {
  torch::manual_seed(31);
  Rotary whole(RotaryOptions(), 8), pieces(RotaryOptions(), 8);
  const auto x = torch::randn({1, 2, 9000, 8});
  const auto turned = whole.rotate(x, 0);
  EXPECT_GE(whole.capacity(), 9000);
  for (const std::int64_t first : {0, 4000, 4095, 4096, 8990}) {
    EXPECT_TRUE(pieces.rotate(x.narrow(2, first, 10), first)
                    .equal(turned.narrow(2, first, 10)))
        << first;
    EXPECT_LE(pieces.capacity(), 8192);
  }
}

TEST(Rotary, TablesGrowAndChangeType) {
  Rotary rotary(RotaryOptions(), 8);
  EXPECT_EQ(rotary.capacity(), 0);
  const auto x = torch::randn({1, 8});
  const auto early = rotary.rotate(x, 3);
  EXPECT_EQ(rotary.capacity(), 64);
  rotary.rotate(x, 64);
  EXPECT_EQ(rotary.capacity(), 128);
  EXPECT_TRUE(rotary.rotate(x, 3).equal(early));
  // Two roundings of products of numbers below |x|.
  EXPECT_LE(test::relative_error(early, rotary.rotate(x.to(torch::kDouble), 3)),
            4 * 0x1p-24);
  EXPECT_EQ(rotary.rotate(x.to(torch::kBFloat16), 3).scalar_type(),
            torch::kBFloat16);
}

TEST(Block, IsItsFormula) {
  torch::manual_seed(7);
  const auto x = random_rows({2, 5, 8});
  for (const char* norm : {"layer", "rms"}) {
    auto block =
        in_double(Block(BlockOptions(8, 2).norm(norm).layer_scale(0.5)));
    const auto y =
        x + 0.5 * block->attention->forward(block->norm1->forward(x));
    EXPECT_SAME(block->forward(x),
                y + 0.5 * block->mlp->forward(block->norm2->forward(y)));
    block->forward(x).square().sum().backward();
    expect_gradients(*block);
  }
}

TEST(Block, DropsPathsAndHandsOnMasks) {
  torch::manual_seed(8);
  const auto x = random_rows({64, 5, 8});
  auto options = BlockOptions(8, 2).drop_path(0.5);
  EXPECT_EQ(options.dropout(0.25).mlp().dropout(), 0.25);
  EXPECT_EQ(options.attention().projection_dropout(), 0.25);
  options.dropout(0);
  auto block = in_double(Block(options));
  const auto same =
      block->forward(x).eq(x).flatten(1).all(1).sum().item<std::int64_t>();
  // Both branches are dropped with probability 1/4: 16 +- 5 * 3.5 of 64.
  EXPECT_GT(same, 0);
  EXPECT_LT(same, 34);
  block->eval();
  const auto mask = torch::arange(5).lt(3).view({1, 1, 1, 5});
  EXPECT_SAME(block->forward(x, mask).narrow(1, 0, 3),
              block->forward(x.narrow(1, 0, 3)));
  expect_error([&] { const Block b(options.mlp(MlpOptions(9, 9))); },
               "[Block] mlp dim 9 != attention dim 8");
}

}  // namespace layers_test
}  // namespace polyattn::nn
