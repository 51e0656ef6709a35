// Gpt: sizes known from elsewhere, decoding, training, errors.
#include "polyattn/models/gpt.h"

#include <ATen/record_function.h>
#include <malloc.h>
#include <torch/optim/adamw.h>

#include "models/meta_device.h"
#include "nn/support.h"

namespace polyattn::models {
namespace gpt_test {

using test::expect_error;
using test::expect_gradients;

GptOptions small() { return GptOptions(32, 2, 4).vocabulary(19).context(12); }

torch::Tensor random_tokens(std::int64_t batch, std::int64_t n) {
  return torch::randint(19, {batch, n}, torch::kLong);
}

// GPT-2 has 124,439,808 and 354,823,168. The others are counted by hand: 12 C^2
// + 13 C for a block.
TEST(Gpt, HasAsManyParametersAsOthers) {
  const auto count = [](const GptOptions& options) {
    return test::parameter_count<Gpt>(
        GptOptions(options).initialisation("torch"));
  };
  EXPECT_EQ(count(gpt_options("gpt2")), 124'439'808);
  EXPECT_EQ(count(gpt_options("gpt2-medium")), 354'823'168);
  EXPECT_EQ(count(gpt_options("bytes-tiny")),
            4 * (12 * 128 * 128 + 13 * 128) + (256 + 128 + 2) * 128);
  EXPECT_EQ(count(gpt_options("bytes-small")),
            6 * (12 * 384 * 384 + 13 * 384) + (256 + 256 + 2) * 384);
  EXPECT_EQ(count(small().tied(false)), count(small()) + 19 * 32);
  EXPECT_EQ(count(small().positions("rotary")), count(small()) - 12 * 32);
}

TEST(Gpt, DropPathGrowsWithDepth) {
  Gpt model(GptOptions(32, 3, 4).vocabulary(19).context(12).drop_path(0.2));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(
        model->blocks->at<nn::BlockImpl>(i).drop_path->options.rate(),
        0.1 * static_cast<double>(i));
  }
}

TEST(Gpt, KnowsItsNames) {
  EXPECT_EQ(gpt_names(), (std::vector<std::string>{"bytes-tiny", "bytes-small",
                                                   "gpt2", "gpt2-medium"}));
  const GptOptions medium = gpt_options("gpt2-medium");
  EXPECT_EQ(medium.block().dim(), 1024);
  EXPECT_EQ(medium.depth(), 24);
  EXPECT_EQ(medium.block().attention().heads(), 16);
  expect_error([] { gpt_options("gpt5"); },
               "[gpt_options] name \"gpt5\" is none of bytes-tiny, "
               "bytes-small, gpt2, gpt2-medium");
}

TEST(Gpt, SeesNoFuture) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    Gpt model(small().activation(formula));
    model->to(torch::kDouble);
    const auto tokens = random_tokens(2, 10);
    const auto whole = model->forward(tokens);
    EXPECT_EQ(whole.sizes(), (std::vector<std::int64_t>{2, 10, 19}));
    EXPECT_SAME(model->forward(tokens.narrow(1, 0, 6)), whole.narrow(1, 0, 6));
    auto changed = tokens.clone();
    changed.select(1, 5).add_(1).remainder_(19);
    EXPECT_GT(test::relative_error(model->forward(changed).select(1, 5),
                                   whole.select(1, 5)),
              1e-3);
  }
}

torch::Tensor in_steps(GptImpl& model, const torch::Tensor& tokens,
                       const std::vector<std::int64_t>& steps) {
  auto caches = model.make_caches();
  std::vector<torch::Tensor> logits;
  std::int64_t first = 0;
  for (const std::int64_t n : steps) {
    logits.push_back(model.forward(tokens.narrow(1, first, n), caches));
    first += n;
  }
  EXPECT_EQ(first, tokens.size(1));
  return torch::cat(logits, 1);
}

TEST(Gpt, DecodesAsItReads) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    for (const char* positions : {"learned", "rotary"}) {
      for (const bool tied : {true, false}) {
        SCOPED_TRACE(std::string(formula) + ' ' + positions);
        auto options =
            small().activation(formula).positions(positions).tied(tied);
        options.block().attention().kv_heads(2);
        Gpt model(options);
        model->to(torch::kDouble);
        const auto tokens = random_tokens(2, 12);
        const auto whole = model->forward(tokens);
        const std::vector<std::int64_t> ones(12, 1);
        EXPECT_SAME(in_steps(*model, tokens, ones), whole);
        EXPECT_SAME(in_steps(*model, tokens, {5, 1, 6}), whole);
      }
    }
  }
}

TEST(Gpt, RotaryOptionsAreThoseOfTheAttention) {
  torch::manual_seed(3);
  auto options = small().positions("rotary");
  Gpt usual(options);
  options.block().attention().rotary(nn::RotaryOptions().base(50));
  Gpt other(options);
  load_state(*other, state_of(*usual));
  const auto tokens = random_tokens(1, 20);  // longer than the context
  EXPECT_GT(
      test::relative_error(other->forward(tokens), usual->forward(tokens)),
      1e-4);
}

TEST(Gpt, LossIsCrossEntropy) {
  torch::manual_seed(4);
  Gpt model(small());
  const auto tokens = random_tokens(2, 10);
  auto targets = random_tokens(2, 10);
  const auto log_p = model->forward(tokens).log_softmax(-1);
  const auto each = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1);
  // 20 numbers of f32 are added up in some order.
  EXPECT_NEAR(model->loss(tokens, targets).item<double>(),
              -each.mean().item<double>(), 1e-5);
  targets.narrow(1, 0, 9).fill_(-100);
  EXPECT_NEAR(model->loss(tokens, targets).item<double>(),
              -each.select(1, 9).mean().item<double>(), 1e-5);
}

TEST(Gpt, ScoresEachTargetByItself) {
  torch::manual_seed(8);
  const torch::NoGradGuard no_grad;
  Gpt model(small().positions("rotary"));
  model->eval();
  // More rows than logits are made of at once.
  const auto tokens = random_tokens(3, 700);
  auto targets = random_tokens(3, 700);
  targets.select(1, 5).fill_(-100);
  const auto scores = model->score(tokens, targets);
  ASSERT_EQ(scores.losses.sizes(), targets.sizes());
  const auto logits = model->forward(tokens);
  const auto each = logits.log_softmax(-1)
                        .gather(-1, targets.clamp_min(0).unsqueeze(-1))
                        .squeeze(-1)
                        .neg();
  const auto asked = targets.ge(0);
  EXPECT_LT((scores.losses - each.where(asked, torch::zeros({})))
                .abs()
                .max()
                .item<double>(),
            1e-5);
  EXPECT_TRUE(scores.hits.equal(logits.argmax(-1).eq(targets)));
  EXPECT_GT(scores.hits.sum().item<std::int64_t>(), 0);
  expect_error([&] { model->score(tokens, targets.narrow(1, 0, 3)); },
               "[Gpt] targets of size [3, 3] != [3, 700] of tokens");
}

// What a text of so many tokens takes: bytes of its state, of all memory that
// malloc has given out, and for the tokens that follow the ops of torch and the
// elements that these are given.
struct DecodingCost {
  std::size_t state = 0;
  std::size_t memory = 0;
  std::int64_t ops = 0;
  std::int64_t elements = 0;
};

thread_local DecodingCost* counted = nullptr;

std::unique_ptr<at::ObserverContext> count_op(const at::RecordFunction& op) {
  if (counted == nullptr) return nullptr;
  ++counted->ops;
  for (const c10::IValue& input : op.inputs())
    if (input.isTensor() && input.toTensor().defined())
      counted->elements += input.toTensor().numel();
  return nullptr;
}

// Of so many single tokens that some of them fold what waits into the sums.
DecodingCost cost_of_steps(GptImpl& model,
                           std::vector<nn::DecodeCache>& caches) {
  constexpr int kSteps = 192;
  DecodingCost cost;
  counted = &cost;
  for (int i = 0; i < kSteps; ++i) model.forward(random_tokens(1, 1), caches);
  counted = nullptr;
  for (const nn::DecodeCache& cache : caches) cost.state += cache.bytes();
  cost.memory = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  return cost;
}

// A text of 100000 tokens costs no more to go on with than one of 8000: not the
// state, nor the memory around it, nor the work of a token. No clock is asked.
TEST(Gpt, AStateOfAHundredThousandTokensIsThatOfAShortText) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(9);
  auto options = small().positions("rotary").activation("x^2/sqrt(N)");
  options.block().attention().short_conv(4).center_values(true);
  Gpt model(options);
  model->eval();
  auto caches = model->make_decode_caches(DecodeMode::kSums);
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(count_op).needsInputs(true));
  constexpr std::int64_t kPiece = 2000;
  const auto read_to = [&](std::int64_t length) {
    while (caches.front().length() < length) {
      model->forward(
          random_tokens(1, std::min(kPiece, length - caches.front().length())),
          caches);
    }
    return cost_of_steps(*model, caches);
  };
  const DecodingCost early = read_to(8000), late = read_to(100'000);
  at::removeCallback(handle);
  EXPECT_EQ(caches.front().length(), 100'192);
  EXPECT_GE(caches.front().folded(), 100'000);
  EXPECT_EQ(early.state, late.state);
  EXPECT_EQ(early.ops, late.ops);
  EXPECT_EQ(early.elements, late.elements);
  EXPECT_GT(early.ops, 192 * 10);
  // A single row of 16 floats for each token would be 6 MB.
  EXPECT_LT(late.memory, early.memory + 100'000);
}

TEST(Gpt, GradientsReachEveryParameter) {
  torch::manual_seed(5);
  for (const bool tied : {true, false}) {
    auto options = small().tied(tied).activation("(1 + x)^2/N");
    options.block().norm("rms").attention().learned_coefficients("head");
    Gpt model(options);
    model->loss(random_tokens(2, 12), random_tokens(2, 12)).backward();
    expect_gradients(*model);
  }
}

// A sequence of period 5 is learned by heart.
TEST(Gpt, LossFalls) {
  for (const char* formula : {"softmax", "x^3/sqrt(N)"}) {
    for (const char* positions : {"learned", "rotary"}) {
      SCOPED_TRACE(std::string(formula) + ' ' + positions);
      torch::manual_seed(6);
      Gpt model(small().activation(formula).positions(positions));
      const auto sequence =
          torch::arange(13, torch::kLong).remainder(5).mul(3).unsqueeze(0);
      const auto tokens = sequence.narrow(1, 0, 12);
      const auto targets = sequence.narrow(1, 1, 12);
      torch::optim::AdamW optimiser(model->parameters(),
                                    torch::optim::AdamWOptions(3e-3));
      double first = 0, last = 0;
      for (int step = 0; step < 30; ++step) {
        optimiser.zero_grad();
        const auto loss = model->loss(tokens, targets);
        loss.backward();
        optimiser.step();
        last = loss.item<double>();
        if (step == 0) first = last;
      }
      EXPECT_NEAR(first, std::log(19.0), 0.2);
      EXPECT_LT(last, 0.5 * first);
    }
  }
}

TEST(Gpt, Refuses) {
  const auto refuse = [](const GptOptions& options,
                         const std::string& message) {
    expect_error([&] { const Gpt model(options); }, "[Gpt] " + message);
  };
  refuse(GptOptions(8, 0, 2), "depth 0 < 1");
  refuse(small().vocabulary(0), "vocabulary 0 < 1");
  refuse(small().context(0), "context 0 < 1");
  refuse(small().positions("sine"),
         "positions \"sine\" is none of learned, rotary");
  refuse(small().dropout(1), "dropout 1 is not in [0, 1)");
  auto rotary = small();
  rotary.block().attention().rotary(nn::RotaryOptions());
  refuse(rotary, "positions \"learned\", but the attention is rotary");
}

// Far beyond the context of its options, which positions by rotation allow.
TEST(Gpt, DecodesWithSumsAsItReads) {
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  Gpt model(small().activation("x^2/sqrt(N)").positions("rotary"));
  model->to(torch::kDouble);
  const auto tokens = random_tokens(2, 150);
  const auto whole = model->forward(tokens);
  for (const DecodeMode mode : {DecodeMode::kAuto, DecodeMode::kSums}) {
    auto caches = model->make_decode_caches(mode);
    std::vector<torch::Tensor> logits = {
        model->forward(tokens.narrow(1, 0, 100), caches)};
    for (std::int64_t i = 100; i < 150; ++i)
      logits.push_back(model->forward(tokens.narrow(1, i, 1), caches));
    EXPECT_SAME(torch::cat(logits, 1), whole);
    EXPECT_GT(caches.front().folded(), 0);
  }
}

TEST(Gpt, RefusesTokens) {
  const torch::NoGradGuard no_grad;
  Gpt model(small());
  expect_error([&] { model->forward(random_tokens(1, 13)); },
               "[Gpt] a sequence of 13 tokens is longer than the context 12 "
               "for which positions were learned");
  expect_error(
      [&] {
        model->forward(torch::full({1, 2}, 19, torch::kLong));
      },
      "[TokenEmbedding] token 19 is not in [0, 19)");
  expect_error([&] { model->forward(torch::zeros({3}, torch::kLong)); },
               "[Gpt] tokens of size [3] are not [B, N]");
  expect_error([&] { model->loss(random_tokens(1, 3), random_tokens(1, 4)); },
               "[Gpt] targets of size [1, 4] != [1, 3] of tokens");
  auto caches = model->make_caches();
  model->forward(random_tokens(1, 10), caches);
  expect_error([&] { model->forward(random_tokens(1, 3), caches); },
               "[Gpt] a sequence of 13 tokens is longer than the context 12 "
               "for which positions were learned");
  caches.pop_back();
  expect_error([&] { model->forward(random_tokens(1, 1), caches); },
               "[Gpt] 1 caches for 2 blocks");
}

}  // namespace gpt_test
}  // namespace polyattn::models
