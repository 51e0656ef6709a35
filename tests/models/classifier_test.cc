// SequenceClassifier: padding that is not seen, pooling, training, errors.
#include "polyattn/models/classifier.h"

#include <torch/optim/adamw.h>

#include "nn/other_ops.h"
#include "nn/support.h"

namespace polyattn::models {
namespace classifier_test {

using test::expect_error;
using test::expect_gradients;

SequenceClassifierOptions small() {
  return SequenceClassifierOptions(32, 2, 4).vocabulary(16).context(12).classes(
      5);
}

torch::Tensor random_tokens(std::int64_t batch, std::int64_t n) {
  return torch::randint(1, 16, {batch, n}, torch::kLong);
}

torch::Tensor lengths_of(const std::vector<std::int64_t>& lengths) {
  return torch::tensor(lengths, torch::kLong);
}

// Weights this large make attention matter: with those of the initialisation
// the logits hardly depend on the scores.
SequenceClassifier double_model(const SequenceClassifierOptions& options) {
  torch::manual_seed(1);
  SequenceClassifier model(options);
  model->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) {
    parameter.add_(torch::randn_like(parameter), 0.2);
  }
  model->eval();
  return model;
}

std::vector<SequenceClassifierOptions> all_kinds() {
  std::vector<SequenceClassifierOptions> kinds;
  for (const char* formula :
       {"softmax", "x^3/sqrt(N)", "x^4/sum", "relu(x)/N"}) {
    for (const char* pooling : {"mean", "class"}) {
      for (const char* positions : {"learned", "rotary"}) {
        kinds.push_back(
            small().activation(formula).pooling(pooling).positions(positions));
      }
    }
  }
  return kinds;
}

std::string name_of(const SequenceClassifierOptions& options) {
  return options.block().attention().activation() + " " + options.pooling() +
         " " + options.positions();
}

// Dim 64, mlp 128: 4 C^2 + 4 C for the attention, 2 C 128 + 128 + C for the
// mlp, 4 C for the norms.
TEST(SequenceClassifier, HasTheSizesOfLongRangeArena) {
  const auto count = [](const SequenceClassifierOptions& options) {
    const SequenceClassifier model(
        SequenceClassifierOptions(options).vocabulary(16).context(2000).classes(
            10));
    std::int64_t sum = 0;
    for (const auto& p : model->parameters()) sum += p.numel();
    return sum;
  };
  const std::int64_t c = 64;
  const std::int64_t block = 4 * c * c + 4 * c + 2 * c * 128 + 128 + c + 4 * c;
  const std::int64_t rest = (16 + 2000) * c + 2 * c + (c + 1) * 10;
  const auto lra = classifier_options("lra");
  EXPECT_EQ(lra.block().attention().heads(), 2);
  EXPECT_EQ(count(lra), 2 * block + rest);
  EXPECT_EQ(count(classifier_options("lra-small")), 4 * block + rest);
  auto by_class = lra;
  by_class.pooling("class");
  EXPECT_EQ(count(by_class), 2 * block + rest + 2 * c);
  auto rotary = lra;
  rotary.positions("rotary");
  EXPECT_EQ(count(rotary), 2 * block + rest - 2000 * c);
}

TEST(SequenceClassifier, KnowsItsNames) {
  EXPECT_EQ(classifier_names(), (std::vector<std::string>{"lra", "lra-small"}));
  expect_error([] { classifier_options("big"); },
               "[classifier_options] name \"big\" is none of lra, lra-small");
}

// Each sequence alone, without padding, against all of them in a batch, with
// anything in their padding.
TEST(SequenceClassifier, SeesNoPadding) {
  const torch::NoGradGuard no_grad;
  const std::vector<std::int64_t> lengths = {1, 5, 12, 8};
  for (const auto& options : all_kinds()) {
    SCOPED_TRACE(name_of(options));
    auto model = double_model(options);
    const auto tokens = random_tokens(4, 12);
    const auto padded = model->forward(tokens, lengths_of(lengths));
    ASSERT_EQ(padded.sizes(), (std::vector<std::int64_t>{4, 5}));
    for (std::int64_t b = 0; b < 4; ++b) {
      const std::int64_t n = lengths[static_cast<std::size_t>(b)];
      const auto alone = tokens.narrow(0, b, 1).narrow(1, 0, n);
      EXPECT_SAME(padded.narrow(0, b, 1), model->forward(alone));
      EXPECT_SAME(padded.narrow(0, b, 1),
                  model->forward(alone, lengths_of({n})));
    }
    // Without lengths what was padding counts.
    EXPECT_GT(test::relative_error(model->forward(tokens), padded), 1e-3);
  }
}

// Padding to the context decides what a landmark is the mean of, not the batch.
TEST(SequenceClassifier, PadsToItsContextForLandmarks) {
  const torch::NoGradGuard no_grad;
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    for (const char* pooling : {"mean", "class"}) {
      SCOPED_TRACE(std::string(formula) + " " + pooling);
      auto options = small().activation(formula).pooling(pooling);
      options.block().nystrom(nn::NystromOptions().landmarks(4).conv(3));
      auto model = double_model(options);
      EXPECT_EQ(nn::attention_layers(*model).front()->kind(), "nystrom");
      const auto tokens = random_tokens(2, 9);
      const auto both = model->forward(tokens, lengths_of({9, 6}));
      // The inverse makes rounding errors larger.
      EXPECT_LE(test::relative_error(model->forward(tokens.narrow(0, 0, 1)),
                                     both.narrow(0, 0, 1)),
                1e-9);
      EXPECT_LE(test::relative_error(
                    model->forward(tokens.narrow(0, 1, 1).narrow(1, 0, 6)),
                    both.narrow(0, 1, 1)),
                1e-9);
    }
  }
}

TEST(SequenceClassifier, RefusesWhatLandmarksCannotHave) {
  const auto with = [](SequenceClassifierOptions options) {
    options.block().nystrom(nn::NystromOptions().landmarks(13));
    return options;
  };
  expect_error([&] { SequenceClassifier model(with(small())); },
               "[SequenceClassifier] landmarks 13 are more than the context 12 "
               "has tokens");
  expect_error(
      [&] {
        SequenceClassifier model(with(small().context(13).positions("rotary")));
      },
      "[NystromAttention] rotary is not for attention by way of landmarks");
  auto model = double_model([&] {
    auto options = small();
    options.block().nystrom(nn::NystromOptions().landmarks(4));
    return options;
  }());
  expect_error([&] { model->forward(random_tokens(1, 5), lengths_of({6})); },
               "[SequenceClassifier] length 6 is not in [1, 5]");
}

TEST(SequenceClassifier, NeedsNoMaskForFullRows) {
  const torch::NoGradGuard no_grad;
  for (const auto& options : all_kinds()) {
    SCOPED_TRACE(name_of(options));
    auto model = double_model(options);
    const auto tokens = random_tokens(3, 7);
    EXPECT_TRUE(model->forward(tokens, lengths_of({7, 7, 7}))
                    .equal(model->forward(tokens)));
  }
  // What is called without a mask says so.
  const auto tokens = random_tokens(2, 6);
  auto model = double_model(small());
  bool masked = false;
  const auto listen = [&](const auto& q, const auto&, const auto&,
                          const polyattn::AttentionOptions& call) {
    masked = call.mask().has_value();
    return torch::zeros_like(q);
  };
  nn::replace_ops(*model, {.attention = listen, .gelu = {}});
  model->forward(tokens, lengths_of({6, 6}));
  EXPECT_FALSE(masked);
  model->forward(tokens, lengths_of({6, 5}));
  EXPECT_TRUE(masked);
}

TEST(SequenceClassifier, PoolsAsAsked) {
  const torch::NoGradGuard no_grad;
  for (const char* pooling : {"mean", "class"}) {
    auto model = double_model(small().pooling(pooling));
    const auto tokens = random_tokens(1, 9);
    torch::Tensor x = model->tokens->forward(tokens);
    if (model->class_token) x = model->class_token->forward(x);
    x = model->positions->forward(x);
    for (std::size_t i = 0; i < 2; ++i) {
      x = model->blocks->at<nn::BlockImpl>(i).forward(x);
    }
    x = model->norm->forward(x);
    EXPECT_SAME(model->features(tokens),
                model->class_token ? x.select(1, 0) : x.mean(1));
    EXPECT_SAME(model->forward(tokens),
                model->head->forward(model->features(tokens)));
  }
}

// What zeros a longer batch has does not matter: the sum is divided by the
// longest that there can be.
TEST(SequenceClassifier, PoolsOverThePaddedLength) {
  const torch::NoGradGuard no_grad;
  auto model = double_model(small().pooling("padded"));
  const auto tokens = random_tokens(2, 9);
  const auto lengths = lengths_of({9, 4});
  torch::Tensor x = model->positions->forward(model->tokens->forward(tokens));
  const torch::Tensor mask =
      torch::arange(9).unsqueeze(0) < lengths.unsqueeze(1);
  for (std::size_t i = 0; i < 2; ++i) {
    x = model->blocks->at<nn::BlockImpl>(i).forward(
        x, mask.unsqueeze(1).unsqueeze(1));
  }
  x = model->norm->forward(x) * mask.unsqueeze(2);
  EXPECT_SAME(model->features(tokens, lengths), x.sum(1) / 12);
  const auto longer = torch::constant_pad_nd(tokens, {0, 3}, 7);
  EXPECT_SAME(model->features(longer, lengths),
              model->features(tokens, lengths));
}

TEST(SequenceClassifier, MasksZerosWhereverTheyStand) {
  const torch::NoGradGuard no_grad;
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    for (const char* pooling : {"mean", "class", "padded"}) {
      auto options = small().activation(formula).pooling(pooling);
      auto model = double_model(options.mask_zeros(true));
      auto tokens = random_tokens(2, 9);
      tokens.index_put_({torch::indexing::Slice(), 3}, 0);
      tokens[1].narrow(0, 6, 3).zero_();
      const torch::Tensor before = model->forward(tokens);
      // What padding means is not looked at.
      model->tokens->weight[0].fill_(5);
      EXPECT_SAME(model->forward(tokens), before);
      // Zeros at the end are what lengths say.
      EXPECT_SAME(model->forward(tokens, lengths_of({9, 6})), before);
      EXPECT_SAME(model->forward(tokens.narrow(0, 1, 1).narrow(1, 0, 6)),
                  before.narrow(0, 1, 1));
      expect_error(
          [&] {
            model->forward(torch::zeros({2, 4}, torch::kLong));
          },
          "[SequenceClassifier] sequence 0 holds nothing but zeros, "
          "which are masked");
    }
  }
}

TEST(SequenceClassifier, ComparesPairs) {
  const torch::NoGradGuard no_grad;
  for (const char* head : {"linear", "mlp"}) {
    auto model = double_model(small().towers(2).head(head));
    const auto tokens = random_tokens(6, 9);
    const auto lengths = lengths_of({9, 3, 4, 9, 1, 8});
    const torch::Tensor rows = model->features(tokens, lengths);
    const torch::Tensor even = torch::arange(0, 6, 2);
    const torch::Tensor a = rows.index_select(0, even);
    const torch::Tensor b = rows.index_select(0, even + 1);
    torch::Tensor x = torch::cat({a, b, a * b, a - b}, 1);
    if (model->head_hidden) x = torch::relu(model->head_hidden->forward(x));
    EXPECT_EQ(model->head_hidden.is_empty(), std::string(head) == "linear");
    EXPECT_SAME(model->forward(tokens, lengths), model->head->forward(x));
    expect_error([&] { model->forward(tokens.narrow(0, 0, 3)); },
                 "[SequenceClassifier] 3 sequences are no pairs");
  }
}

// The order of the tokens matters, and later ones matter to all: it is not
// causal.
TEST(SequenceClassifier, KnowsPositions) {
  const torch::NoGradGuard no_grad;
  for (const char* positions : {"learned", "rotary"}) {
    SCOPED_TRACE(positions);
    auto model = double_model(small().positions(positions).pooling("class"));
    const auto tokens = torch::arange(1, 11, torch::kLong).unsqueeze(0);
    const auto before = model->forward(tokens);
    EXPECT_GT(test::relative_error(model->forward(tokens.flip(1)), before),
              1e-3);
    auto other = tokens.clone();
    other[0][9] = 11;
    EXPECT_GT(test::relative_error(model->forward(other), before), 1e-3);
  }
  // Rotary positions have no limit.
  auto model = double_model(small().positions("rotary"));
  EXPECT_EQ(model->forward(random_tokens(1, 40)).size(0), 1);
}

TEST(SequenceClassifier, GradientsReachEveryParameter) {
  for (const auto& options : all_kinds()) {
    SCOPED_TRACE(name_of(options));
    torch::manual_seed(2);
    SequenceClassifier model(options);
    const auto lengths = lengths_of({12, 12, 3});
    // Every token and position once at least.
    auto tokens = random_tokens(3, 12);
    tokens.flatten().narrow(0, 0, 16).copy_(torch::arange(16, torch::kLong));
    model->forward(tokens, lengths).square().sum().backward();
    expect_gradients(*model);
  }
}

TEST(SequenceClassifier, PaddingHasNoGradient) {
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    SequenceClassifier model(small().activation(formula));
    auto tokens = torch::ones({2, 12}, torch::kLong);
    tokens.narrow(1, 4, 8).zero_();
    model->forward(tokens, lengths_of({4, 4})).square().sum().backward();
    const auto of_tokens = model->tokens->weight.grad();
    EXPECT_EQ(of_tokens[0].abs().max().item<float>(), 0);
    EXPECT_GT(of_tokens[1].abs().max().item<float>(), 0);
    const auto of_positions = model->positions->weight.grad();
    EXPECT_EQ(of_positions.narrow(0, 4, 8).abs().max().item<float>(), 0);
  }
}

// Eight random sequences of different lengths are learned by heart.
TEST(SequenceClassifier, LossFalls) {
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    SCOPED_TRACE(formula);
    torch::manual_seed(3);
    SequenceClassifier model(small().activation(formula));
    const auto tokens = random_tokens(8, 12);
    const auto lengths = lengths_of({12, 11, 10, 9, 8, 7, 6, 5});
    const auto labels = torch::arange(8, torch::kLong).remainder(5);
    torch::optim::AdamW optimiser(model->parameters(),
                                  torch::optim::AdamWOptions(3e-3));
    double first = 0, last = 0;
    for (int step = 0; step < 40; ++step) {
      optimiser.zero_grad();
      const auto loss =
          torch::cross_entropy_loss(model->forward(tokens, lengths), labels);
      loss.backward();
      optimiser.step();
      last = loss.item<double>();
      if (step == 0) first = last;
    }
    EXPECT_LT(last, 0.5 * first);
  }
}

TEST(SequenceClassifier, DropsAsAsked) {
  torch::manual_seed(4);
  SequenceClassifier model(
      SequenceClassifierOptions(32, 3, 2).vocabulary(16).dropout(0.1).drop_path(
          0.2));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(
        model->blocks->at<nn::BlockImpl>(i).drop_path->options.rate(),
        0.1 * static_cast<double>(i));
  }
  const auto tokens = random_tokens(4, 10);
  EXPECT_FALSE(model->forward(tokens).equal(model->forward(tokens)));
  model->eval();
  EXPECT_TRUE(model->forward(tokens).equal(model->forward(tokens)));
}

TEST(SequenceClassifier, ClonesAreApart) {
  torch::manual_seed(5);
  SequenceClassifier model(small().pooling("class"));
  const auto tokens = random_tokens(2, 8);
  const auto lengths = lengths_of({8, 3});
  const auto before = model->forward(tokens, lengths);
  const auto clone =
      std::dynamic_pointer_cast<SequenceClassifierImpl>(model->clone());
  ASSERT_NE(clone, nullptr);
  EXPECT_TRUE(clone->forward(tokens, lengths).equal(before));
  const torch::NoGradGuard no_grad;
  for (auto& parameter : clone->parameters()) parameter.zero_();
  EXPECT_EQ(clone->forward(tokens, lengths).abs().max().item<float>(), 0);
  EXPECT_TRUE(model->forward(tokens, lengths).equal(before));
}

TEST(SequenceClassifier, RefusesOptions) {
  const auto refuse = [](const SequenceClassifierOptions& options,
                         const std::string& message) {
    expect_error([&] { const SequenceClassifier model(options); },
                 "[SequenceClassifier] " + message);
  };
  refuse(SequenceClassifierOptions(8, 0, 2), "depth 0 < 1");
  refuse(small().vocabulary(0), "vocabulary 0 < 1");
  refuse(small().context(-3), "context -3 < 1");
  refuse(small().classes(0), "classes 0 < 1");
  refuse(small().positions("sine"),
         "positions \"sine\" is none of learned, rotary");
  refuse(small().pooling("max"),
         "pooling \"max\" is none of mean, class, padded");
  refuse(small().head("deep"), "head \"deep\" is none of linear, mlp");
  refuse(small().pooling("padded").positions("rotary"),
         "pooling \"padded\" needs positions \"learned\", which say how long a "
         "padded sequence is");
  refuse(small().towers(3), "towers 3 are neither 1 nor 2");
  refuse(small().dropout(1), "dropout 1 is not in [0, 1)");
  refuse(small().drop_path(-1), "drop_path -1 is not in [0, 1)");
  auto causal = small();
  causal.block().attention().causal(true);
  refuse(causal,
         "the attention is causal: no row but the last would see the whole "
         "sequence");
  auto rotary = small();
  rotary.block().attention().rotary(nn::RotaryOptions());
  refuse(rotary, "positions \"learned\", but the attention is rotary");
}

TEST(SequenceClassifier, RefusesInputs) {
  SequenceClassifier model(small());
  const auto refuse = [&](const torch::Tensor& tokens,
                          const torch::Tensor& lengths,
                          const std::string& message) {
    expect_error([&] { model->forward(tokens, lengths); }, message);
  };
  const auto tokens = random_tokens(2, 6);
  refuse(tokens, lengths_of({6, 0}),
         "[SequenceClassifier] length 0 is not in [1, 6]");
  refuse(tokens, lengths_of({7, 6}),
         "[SequenceClassifier] length 7 is not in [1, 6]");
  refuse(tokens, lengths_of({6}),
         "[SequenceClassifier] lengths of size [1] are not [2], one for each "
         "sequence");
  refuse(tokens, torch::ones({2}),
         "[SequenceClassifier] lengths of type Float are neither i64 nor i32");
  refuse(tokens[0], {},
         "[SequenceClassifier] tokens of size [6] are not [B, N] with N > 0");
  refuse(random_tokens(2, 0), {},
         "[SequenceClassifier] tokens of size [2, 0] are not [B, N] with N > "
         "0");
  refuse(random_tokens(2, 13), {},
         "[SequenceClassifier] a sequence of 13 tokens is longer than the "
         "context 12 for which positions were learned");
  refuse(tokens + 16, {},
         "[TokenEmbedding] token " +
             std::to_string(tokens.max().item<std::int64_t>() + 16) +
             " is not in [0, 16)");
}

}  // namespace classifier_test
}  // namespace polyattn::models
