// Nystrom attention against its definition in torch ops with all matrices
// written out, where it is exact attention, what is watched, its start, errors.
#include "polyattn/nn/nystrom_attention.h"

#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

#include "nn/pseudo_inverse.h"
#include "nn/support.h"
#include "polyattn/nn/block.h"
#include "polyattn/nn/initialise.h"
#include "torch/autocast.h"

namespace polyattn::nn {
namespace nystrom_test {

using test::expect_error;
using test::expect_gradients;
using test::random_rows;
using test::relative_error;

constexpr std::int64_t kDim = 12;
constexpr std::int64_t kHeads = 3;
constexpr std::int64_t kHeadDim = kDim / kHeads;

NystromAttentionOptions small(const std::string& formula,
                              const NystromOptions& nystrom) {
  return NystromAttentionOptions(kDim, kHeads)
      .activation(formula)
      .nystrom(nystrom);
}

template <typename Module>
Module drawn(Module module) {
  torch::manual_seed(5);
  module->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module->parameters()) parameter.normal_(0, 0.5);
  return module;
}

// True for the first `length` of n keys: [B, 1, 1, n].
torch::Tensor mask_of(const std::vector<std::int64_t>& lengths,
                      std::int64_t n) {
  return (torch::arange(n).unsqueeze(0) <
          torch::tensor(lengths, torch::kLong).unsqueeze(1))
      .unsqueeze(1)
      .unsqueeze(1);
}

// f of the scores [B, H, N, M], of which hidden keys have weight 0.
torch::Tensor weights_of(const torch::Tensor& q, const torch::Tensor& k,
                         const torch::Tensor& seen,
                         const std::string& formula) {
  const auto s = q.matmul(k.transpose(-2, -1)) / std::sqrt(1.0 * q.size(-1));
  const auto n = seen.sum(-1, true).to(torch::kDouble);
  const auto keep = seen.to(torch::kDouble);
  if (formula == "softmax") {
    const auto e = s.exp() * keep;
    return e / e.sum(-1, true);
  }
  if (formula == "x^2/sum") {
    const auto w = s.square() * keep;
    return w / w.sum(-1, true).clamp_min(1e-300);  // zeros stay zeros
  }
  if (formula == "x^2/sqrt(N)") return s.square() * keep / n.sqrt();
  EXPECT_EQ(formula, "x^3/sqrt(N)");
  return s.pow(3) * keep / n.sqrt();
}

torch::Tensor plain_inverse(const torch::Tensor& a, const NystromOptions& o) {
  if (o.inverse() == "exact") return torch::linalg_pinv(a, o.rcond());
  const auto columns = a.abs().sum(2, true), rows = a.abs().sum(3, true);
  auto c = columns.amax({2, 3}, true) * rows.amax({2, 3}, true);
  if (o.scaling() == "batch") c = columns.max() * rows.max();
  auto z = a.transpose(2, 3) / c;
  const auto one = torch::eye(a.size(3), torch::kDouble);
  for (std::int64_t i = 0; i < o.iterations(); ++i) {
    const auto t = a.matmul(z);
    const auto t2 = t.matmul(t), t3 = t2.matmul(t);
    z = z.matmul(13 * one - 15 * t + 7 * t2 - t3) / 4;
  }
  return z;
}

struct Plain {
  torch::Tensor f, a, b;  // the three matrices
  torch::Tensor matrix;   // F Z B, [B, H, N, N]
  torch::Tensor output;
};

// [B, N, C] -> [B, H, N, D].
torch::Tensor by_head(const torch::Tensor& rows) {
  return rows.unflatten(2, {kHeads, kHeadDim}).transpose(1, 2);
}

// Whatever the length, rows are added up to a multiple of the landmarks.
Plain plain_nystrom(NystromAttentionImpl& module, const torch::Tensor& x,
                    const torch::Tensor& mask) {
  const NystromOptions& o = module.options.nystrom();
  const std::int64_t n = x.size(1), m = o.landmarks();
  const std::int64_t full = (n + m - 1) / m * m;
  const auto visible = torch::cat(
      {mask.defined() ? mask.expand({x.size(0), 1, 1, n})
                      : torch::ones({x.size(0), 1, 1, n}, torch::kBool),
       torch::zeros({x.size(0), 1, 1, full - n}, torch::kBool)},
      3);
  const auto rows = torch::where(
      visible.squeeze(1).transpose(1, 2),
      torch::cat({torch::linear(x, module.in_proj_weight, module.in_proj_bias),
                  torch::zeros({x.size(0), full - n, 3 * kDim}, x.options())},
                 1),
      torch::zeros({1}, x.options()));
  const auto parts = rows.split(kDim, 2);
  const auto q = by_head(parts[0]), k = by_head(parts[1]),
             v = by_head(parts[2]);
  const auto means = [&](const torch::Tensor& t) {
    std::vector<torch::Tensor> list;
    for (const auto& segment : t.split(full / m, 2))
      list.push_back(segment.mean(2));
    return torch::stack(list, 2);
  };
  const auto all = torch::ones({1, 1, 1, m}, torch::kBool);
  const std::string& formula = module.options.activation();
  Plain plain;
  plain.f = weights_of(q, means(k), all, formula);
  plain.a = weights_of(means(q), means(k), all, formula);
  plain.b = weights_of(means(q), k, visible, formula);
  plain.matrix = plain.f.matmul(plain_inverse(plain.a, o)).matmul(plain.b);
  auto y = plain.matrix.matmul(v);
  if (module.conv_weight.defined()) {
    y = y + torch::conv2d(v, module.conv_weight, {}, 1, {o.conv() / 2, 0}, 1,
                          kHeads);
  }
  plain.output =
      module.out_proj->forward(y.narrow(2, 0, n).transpose(1, 2).flatten(2));
  return plain;
}

// Gradients of x and of all parameters.
std::vector<torch::Tensor> gradients(const torch::nn::Module& module,
                                     const torch::Tensor& y,
                                     const torch::Tensor& x) {
  std::vector<torch::Tensor> inputs = module.parameters();
  inputs.push_back(x);
  const auto weight = torch::arange(y.numel(), torch::kDouble).view(y.sizes());
  return torch::autograd::grad({(y * weight.cos()).sum()}, inputs);
}

// Six steps leave Z of a norm of at most 1178 / sqrt(c), by which rounding may
// be larger than elsewhere.
constexpr double kInverted = 1000 * test::kRounding;

void expect_its_definition(const NystromAttentionOptions& options,
                           std::int64_t n, bool masked) {
  SCOPED_TRACE(options.activation() + " " + options.nystrom().inverse() +
               (masked ? " masked " : " ") + std::to_string(n));
  auto module = drawn(NystromAttention(options));
  const auto x = random_rows({2, n, kDim}).requires_grad_();
  const auto mask = masked ? mask_of({n, n - 5}, n) : torch::Tensor();
  const auto y = module->forward(x, mask);
  const auto expected = plain_nystrom(*module, x, mask).output;
  const auto kept = masked ? mask.squeeze(1).transpose(1, 2).to(torch::kDouble)
                           : torch::ones({1}, torch::kDouble);
  EXPECT_LE(relative_error(y * kept, expected * kept), kInverted);
  const auto actual = gradients(*module, y * kept, x);
  const auto wanted = gradients(*module, expected * kept, x);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_LE(relative_error(actual[i], wanted[i]), kInverted);
  }
}

TEST(NystromAttention, IsItsDefinition) {
  for (const std::string formula :
       {"softmax", "x^2/sqrt(N)", "x^3/sqrt(N)", "x^2/sum"}) {
    for (const std::int64_t n : {24, 23, 9}) {
      for (const bool masked : {false, true}) {
        expect_its_definition(
            small(formula, NystromOptions().landmarks(4).conv(5)), n, masked);
      }
    }
    expect_its_definition(
        small(formula, NystromOptions().landmarks(4).conv(3).scaling("batch")),
        23, true);
    expect_its_definition(
        small(formula, NystromOptions().landmarks(4).conv(0).inverse("exact")),
        23, true);
  }
}

// The same weights in full attention, without the convolution.
torch::Tensor full_attention(const NystromAttentionImpl& module,
                             const torch::Tensor& x) {
  Attention full(
      AttentionOptions(kDim, kHeads).activation(module.options.activation()));
  full->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  full->in_proj_weight.copy_(module.in_proj_weight);
  full->in_proj_bias.copy_(module.in_proj_bias);
  full->out_proj->weight.copy_(module.out_proj->weight);
  full->out_proj->bias.copy_(module.out_proj->bias);
  return full->forward(x);
}

TEST(NystromAttention, IsFullAttentionWhereTokensAreNoMoreThanLandmarks) {
  for (const std::int64_t n : {8, 5}) {
    auto module = drawn(NystromAttention(
        small("softmax", NystromOptions().landmarks(8).conv(0))));
    const auto x = random_rows({2, n, kDim});
    EXPECT_SAME(module->forward(x), full_attention(*module, x));
  }
}

// Each row stands there twice, and the landmarks are the rows: then F Z B is
// the matrix itself, if Z has converged.
TEST(NystromAttention, IsExactWhereLandmarksAreTheTokens) {
  for (const std::string formula : {"softmax", "x^2/sqrt(N)", "x^3/sqrt(N)"}) {
    for (const auto& nystrom :
         {NystromOptions().iterations(40),
          NystromOptions().inverse("exact").rcond(1e-13)}) {
      SCOPED_TRACE(formula + " " + nystrom.inverse());
      auto module = drawn(NystromAttention(
          small(formula, NystromOptions(nystrom).landmarks(6).conv(0))));
      const auto x = random_rows({2, 6, kDim}).repeat_interleave(2, 1);
      // By the condition of A, which is below 1e4 here.
      EXPECT_LE(relative_error(module->forward(x), full_attention(*module, x)),
                1e-8);
    }
  }
}

// x^2 of heads 2 wide has three features: landmarks that are more than these
// lose nothing, whatever the rows are.
TEST(NystromAttention, IsExactWhereAPolynomialHasFewFeatures) {
  NystromAttentionOptions options(4, 2);
  options.activation("x^2/sqrt(N)")
      .nystrom(
          NystromOptions().landmarks(5).conv(0).inverse("exact").rcond(1e-10));
  auto module = drawn(NystromAttention(options));
  Attention full(AttentionOptions(4, 2).activation("x^2/sqrt(N)"));
  full->to(torch::kDouble);
  {
    const torch::NoGradGuard no_grad;
    for (const auto& item : full->named_parameters()) {
      torch::Tensor(item.value()).copy_(module->named_parameters()[item.key()]);
    }
  }
  const auto x = random_rows({2, 33, 4});
  const auto mask = mask_of({33, 20}, 33);
  const auto kept = mask.squeeze(1).transpose(1, 2).to(torch::kDouble);
  EXPECT_LE(relative_error(module->forward(x, mask) * kept,
                           full->forward(x, mask) * kept),
            1e-8);
}

TEST(NystromAttention, DoesNotSeePadding) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::string formula : {"softmax", "x^3/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    auto module = drawn(NystromAttention(
        small(formula, NystromOptions().landmarks(4).conv(5))));
    const auto x = random_rows({2, 14, kDim});
    auto other = x.clone();
    other[1].narrow(0, 9, 5).fill_(nan);
    const auto mask = mask_of({14, 9}, 14);
    const auto y = module->forward(x, mask), z = module->forward(other, mask);
    EXPECT_TRUE(y[0].equal(z[0]));
    EXPECT_TRUE(y[1].narrow(0, 0, 9).equal(z[1].narrow(0, 0, 9)));
  }
}

TEST(NystromAttention, ExamplesAreApartUnlessTheyShareADivisor) {
  const auto x = random_rows({3, 16, kDim});
  for (const std::string scaling : {"matrix", "batch"}) {
    auto module = drawn(NystromAttention(
        small("softmax",
              NystromOptions().landmarks(4).iterations(2).scaling(scaling))));
    const auto y = module->forward(x),
               first = module->forward(x.narrow(0, 0, 1));
    const double error = relative_error(first, y.narrow(0, 0, 1));
    if (scaling == "matrix") {
      EXPECT_LE(error, kInverted);
    } else {
      EXPECT_GT(error, 1e-6);
    }
  }
}

TEST(NystromAttention, WatchesTheNormsOfTheWhole) {
  for (const std::string formula : {"softmax", "x^3/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    auto module = drawn(NystromAttention(
        small(formula, NystromOptions().landmarks(4).conv(5))));
    EXPECT_EQ(module->kind(), "nystrom");
    ASSERT_EQ(attention_layers(*module).size(), 1U);
    const auto x = random_rows({2, 22, kDim});
    const auto mask = mask_of({22, 15}, 22);
    const auto unwatched = module->forward(x, mask);
    module->watch_norms(true);
    module->watch_weights(true);
    EXPECT_TRUE(module->forward(x, mask).equal(unwatched));
    const Plain plain = plain_nystrom(*module, x, mask);
    EXPECT_LE(
        relative_error(module->norms()->weight, plain.matrix.norm(2, {2, 3})),
        kInverted);
    // The map is of the rows that there are.
    EXPECT_LE(relative_error(module->weights(),
                             plain.matrix.narrow(2, 0, 22).narrow(3, 0, 22)),
              kInverted);
    EXPECT_EQ(module->keys(), 24);
    EXPECT_EQ(module->norms()->non_finite.sum().item<std::int64_t>(), 0);
    EXPECT_TRUE(module->norms()->jacobian.gt(0).all().item<bool>());
  }
}

// x^2 has the Jacobian 2 x, so that the three norms follow from the matrices.
TEST(NystromAttention, JacobianIsOfTheThreeMatrices) {
  auto module = drawn(NystromAttention(
      small("x^2/sqrt(N)", NystromOptions().landmarks(4).conv(0))));
  const auto x = random_rows({2, 12, kDim});
  module->watch_norms(true);
  module->forward(x);
  const Plain plain = plain_nystrom(*module, x, {});
  // w = s^2 / sqrt(N): (2 s)^2 / N = 4 w / sqrt(N).
  const auto square = 4 * (plain.f.sum({2, 3}) / std::sqrt(4.0) +
                           plain.a.sum({2, 3}) / std::sqrt(4.0) +
                           plain.b.sum({2, 3}) / std::sqrt(12.0));
  EXPECT_SAME(module->norms()->jacobian, square.sqrt());
  const auto largest = torch::stack({plain.f.amax({2, 3}) * std::sqrt(4.0),
                                     plain.a.amax({2, 3}) * std::sqrt(4.0),
                                     plain.b.amax({2, 3}) * std::sqrt(12.0)});
  EXPECT_SAME(module->norms()->max_abs_score, largest.amax(0).sqrt());
}

TEST(NystromAttention, MatchesTheNormOfSoftmax) {
  for (const std::string formula : {"x^3/sqrt(N)", "x^2/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    auto module = drawn(NystromAttention(
        small(formula, NystromOptions().landmarks(4).conv(5))));
    const auto x = 3 * random_rows({2, 22, kDim});
    const auto mask = mask_of({22, 15}, 22);
    const auto start = match_start(
        *module, [&] { module->forward(x, mask); }, 0.5);
    ASSERT_EQ(start.size(), 1U);
    module->watch_norms(true);
    module->watch_other("softmax");
    module->forward(x, mask);
    const auto own = module->norms()->weight.mean(0);
    const auto softmax = module->other_norms()->weight.mean(0);
    for (std::int64_t h = 0; h < kHeads; ++h) {
      EXPECT_LT(start[0][static_cast<std::size_t>(h)].gain, 1);
      // The search ends at 1e-4 in the logarithm.
      EXPECT_NEAR(own[h].item<double>() / softmax[h].item<double>(), 0.5, 1e-4);
    }
  }
}

// F and B lose weights, each by itself, so that the mean is what it was.
TEST(NystromAttention, DropsWeights) {
  torch::manual_seed(7);
  auto module = drawn(NystromAttention(
      small("softmax", NystromOptions().landmarks(4).conv(0)).dropout(0.2)));
  const auto x = random_rows({1, 16, kDim});
  module->eval();
  const auto expected = module->forward(x);
  module->train();
  EXPECT_FALSE(module->forward(x).equal(expected));
  constexpr int kDraws = 400;
  std::vector<torch::Tensor> draws;
  for (int i = 0; i < kDraws; ++i) draws.push_back(module->forward(x).detach());
  const auto all = torch::stack(draws);
  const auto error = all.std(0) / std::sqrt(1.0 * kDraws);
  // 192 numbers, each five standard errors away with a chance of 6e-7.
  EXPECT_TRUE(
      (all.mean(0) - expected).abs().le(5 * error + 1e-12).all().item<bool>());
}

TEST(NystromAttention, GradientsReachEveryParameter) {
  auto module = drawn(NystromAttention(
      small("x^3/sqrt(N)", NystromOptions().landmarks(4).conv(5))));
  module->forward(random_rows({2, 17, kDim})).square().sum().backward();
  expect_gradients(*module);
  const auto clone =
      std::dynamic_pointer_cast<NystromAttentionImpl>(module->clone());
  const auto x = random_rows({2, 17, kDim});
  EXPECT_TRUE(clone->forward(x).equal(module->forward(x)));
}

// Rows in bf16, but the inverse in f32: no further off than full attention.
TEST(NystromAttention, KeepsItsInverseWideUnderAutocast) {
  torch::manual_seed(3);
  NystromAttention module(
      NystromAttentionOptions(32, 2).nystrom(NystromOptions().landmarks(8)));
  Attention full(AttentionOptions(32, 2));
  const auto x = torch::randn({2, 64, 32});
  const torch::NoGradGuard no_grad;
  const auto error_of = [&](auto& layer) {
    const auto exact = layer->forward(x);
    set_autocast_type(at::kBFloat16);
    enable_autocast(true);
    at::autocast::increment_nesting();
    const auto y = layer->forward(x);
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    enable_autocast(false);
    return relative_error(y, exact);
  };
  // The inverse multiplies what is rounded by a few.
  EXPECT_LE(error_of(module), 8 * error_of(full));
}

TEST(PseudoInverse, IsWhatNystromformerPublishesForTheBatch) {
  torch::manual_seed(4);
  const auto a = random_rows({2, 3, 8, 8}).softmax(-1);
  auto z = a.transpose(2, 3) / a.sum(-2).max();
  const auto one = torch::eye(8, torch::kDouble);
  for (int i = 0; i < 6; ++i) {
    const auto t = a.matmul(z);
    z = 0.25 * z.matmul(13 * one - t.matmul(15 * one - t.matmul(7 * one - t)));
  }
  EXPECT_LE(
      relative_error(pseudo_inverse(a, NystromOptions().scaling("batch")), z),
      kInverted);
}

// Of any size and sign, and of a rank below the full one. More steps than are
// needed would make something of the rounding errors in directions in which the
// matrix has nothing: 13/4 times as much in each.
TEST(PseudoInverse, Converges) {
  torch::manual_seed(6);
  const auto low = random_rows({1, 2, 8, 3}).matmul(random_rows({1, 2, 3, 8}));
  const auto full = random_rows({1, 2, 8, 8});
  for (const auto& a : {full, low, full.softmax(-1)}) {
    for (const double factor : {1e-3, 1.0, 1e3}) {
      const auto scaled = a * factor;
      const auto wanted = torch::linalg_pinv(scaled, 1e-10);
      for (const auto& options :
           {NystromOptions().iterations(a.equal(low) ? 12 : 20),
            NystromOptions().inverse("exact").rcond(1e-10)}) {
        EXPECT_LE(relative_error(pseudo_inverse(scaled, options), wanted),
                  1e-8);
      }
    }
  }
  const auto zero = torch::zeros({1, 1, 4, 4}, torch::kDouble);
  EXPECT_TRUE(pseudo_inverse(zero, NystromOptions()).equal(zero));
}

TEST(NystromAttention, StandsInABlock) {
  torch::manual_seed(8);
  BlockOptions options(kDim, kHeads);
  options.attention().activation("x^3/sqrt(N)");
  options.nystrom(NystromOptions().landmarks(4).conv(5));
  Block block(options);
  block->to(torch::kDouble);
  const auto x = random_rows({2, 10, kDim});
  const auto y = x + block->nystrom->forward(block->norm1->forward(x));
  EXPECT_SAME(block->forward(x),
              y + block->mlp->forward(block->norm2->forward(y)));
  EXPECT_TRUE(block->named_parameters().contains("attention.conv_weight"));
  EXPECT_EQ(attention_layers(*block).size(), 1U);
  initialise(*block, {"vit"});
  EXPECT_GT(block->nystrom->conv_weight.abs().min().item<double>(), 0);
  EXPECT_TRUE(block->nystrom->in_proj_bias.eq(0).all().item<bool>());
  KvCache cache;
  expect_error([&] { block->forward(x, cache); },
               "[Block] Nystrom attention has no cache: each row meets "
               "landmarks of the whole sequence");
}

TEST(NystromAttention, Refuses) {
  const auto refuse = [](const NystromOptions& nystrom,
                         const std::string& message) {
    expect_error([&] { const NystromAttention a(small("softmax", nystrom)); },
                 message);
  };
  refuse(NystromOptions().landmarks(0), "[NystromAttention] landmarks 0 < 1");
  refuse(NystromOptions().conv(4),
         "[NystromAttention] conv 4 is neither 0 nor odd");
  refuse(NystromOptions().conv(-1),
         "[NystromAttention] conv -1 is neither 0 nor odd");
  refuse(NystromOptions().iterations(0), "[NystromAttention] iterations 0 < 1");
  refuse(NystromOptions().rcond(1),
         "[NystromAttention] rcond 1 is not in [0, 1)");
  refuse(NystromOptions().inverse("qr"),
         "[NystromAttention] inverse \"qr\" is none of iterative, exact");
  refuse(NystromOptions().scaling("row"),
         "[NystromAttention] scaling \"row\" is none of matrix, batch");
  expect_error([] { NystromAttention(NystromAttentionOptions(8, 3)); },
               "[NystromAttention] dim 8 is no positive multiple of heads 3");
  NystromAttention module(small("softmax", NystromOptions().landmarks(4)));
  expect_error(
      [&] {
        module->forward(torch::zeros({2, 8}));
      },
      "[NystromAttention] x of size [2, 8] is not [B, N, 12]");
  expect_error(
      [&] {
        module->forward(torch::zeros({2, 8, kDim}),
                        torch::ones({8, 8}, torch::kBool));
      },
      "[NystromAttention] a mask of type Bool and size [8, 8] is not bool [2 "
      "or 1, 1, 1, 8], of keys: rows meet landmarks, not keys");
  const auto refuse_part = [](const AttentionOptions& attention,
                              const std::string& part) {
    BlockOptions options(kDim, kHeads);
    options.attention(attention).nystrom(NystromOptions());
    expect_error([&] { const Block block(options); },
                 "[NystromAttention] " + part +
                     " is not for attention by way of landmarks");
  };
  const AttentionOptions plain(kDim, kHeads);
  refuse_part(AttentionOptions(plain).causal(true), "causal");
  refuse_part(AttentionOptions(plain).rotary(RotaryOptions()), "rotary");
  refuse_part(AttentionOptions(plain).kv_heads(1), "kv_heads");
  refuse_part(AttentionOptions(plain).short_conv(3), "short_conv");
  refuse_part(AttentionOptions(plain).norm_clamp("rescale"), "norm_clamp");
}

}  // namespace nystrom_test
}  // namespace polyattn::nn
