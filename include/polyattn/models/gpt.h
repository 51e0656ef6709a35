// Language model: tokens, positions, causal blocks, norm, logits. With softmax
// and learned positions it is GPT-2.
//
//   Gpt model(gpt_options("bytes-small").activation("x^3/sqrt(N)"));
//   torch::Tensor logits = model->forward(tokens);  // [B, N] -> [B, N, V]
#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "polyattn/models/weights.h"
#include "polyattn/nn/block.h"
#include "polyattn/nn/embedding.h"

namespace polyattn::models {

struct GptOptions {
  GptOptions(std::int64_t dim, std::int64_t depth, std::int64_t heads);

  TORCH_ARG(std::int64_t, depth);
  // Width, heads, activation, mlp and all that concerns a layer. It is made
  // causal by the model, which sets its drop_path too.
  TORCH_ARG(nn::BlockOptions, block);
  TORCH_ARG(std::int64_t, vocabulary) = 256;
  // Learned positions: the longest sequence. Rotary positions have no limit.
  TORCH_ARG(std::int64_t, context) = 256;
  // learned, or rotary (by block().attention().rotary() if that is set).
  TORCH_ARG(std::string, positions) = "learned";
  // The embedding of the tokens is the output layer too.
  TORCH_ARG(bool, tied) = true;
  // Of the embedded tokens.
  TORCH_ARG(double, dropout) = 0;
  // Of the last block; it grows linearly from 0 at the first.
  TORCH_ARG(double, drop_path) = 0;
  // polyattn/nn/initialise.h.
  TORCH_ARG(std::string, initialisation) = "gpt2";
  TORCH_ARG(double, qk_gain) = 1;

 public:
  GptOptions& activation(const std::string& formula) {
    block_.attention().activation(formula);
    return *this;
  }
};

// bytes-tiny, bytes-small (256 tokens), gpt2, gpt2-medium (50257 tokens).
// docs/models.md has their sizes.
GptOptions gpt_options(const std::string& name);
std::vector<std::string> gpt_names();

// Of each target [B, N].
struct TokenScores {
  torch::Tensor losses;  // cross-entropy, in nats; 0 where a target is -100
  torch::Tensor hits;    // bool: it is the likeliest token
};

class GptImpl : public torch::nn::Cloneable<GptImpl> {
 public:
  explicit GptImpl(const GptOptions& options_);

  void reset() override;

  // Integers [B, N] -> logits [B, N, V].
  torch::Tensor forward(const torch::Tensor& tokens);

  // The same for tokens that follow on those in the caches, one for each block.
  // Under torch::NoGradGuard.
  torch::Tensor forward(const torch::Tensor& tokens,
                        std::vector<nn::KvCache>& caches);

  std::vector<nn::KvCache> make_caches() const;

  // The same with caches that hold sums where the activation has them.
  torch::Tensor forward(const torch::Tensor& tokens,
                        std::vector<nn::DecodeCache>& caches);

  std::vector<nn::DecodeCache> make_decode_caches(DecodeMode mode) const;

  // Mean cross-entropy, in nats, of the token that follows each: targets [B, N]
  // is tokens [B, N] moved by one. Targets of -100 do not count.
  torch::Tensor loss(const torch::Tensor& tokens, const torch::Tensor& targets);

  // The loss of each target by itself. Logits are made of some rows at a time,
  // so that a long text and a large vocabulary need little memory together.
  // Under torch::NoGradGuard.
  TokenScores score(const torch::Tensor& tokens, const torch::Tensor& targets);

  GptOptions options;
  nn::TokenEmbedding tokens{nullptr};
  nn::PositionEmbedding positions{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  nn::Norm norm{nullptr};
  torch::nn::Linear head{nullptr};

 private:
  torch::Tensor embed(const torch::Tensor& tokens_, std::int64_t first);
  torch::Tensor through_blocks(const torch::Tensor& tokens_);
  torch::Tensor logits(const torch::Tensor& x);
  template <typename Cache>
  torch::Tensor forward_cached(const torch::Tensor& tokens_,
                               std::vector<Cache>& caches);
};

TORCH_MODULE(Gpt);

// Weights under the names of GPT-2 as Hugging Face has them, with or without
// `transformer.` before them. Matrices are [in, out] there. The masks that some
// files hold (attn.bias, attn.masked_bias) are ignored. lm_head.weight may be
// missing; if the model ties its embeddings, it must equal wte.weight.
void load_gpt2(Gpt& model, const NamedTensors& tensors);

}  // namespace polyattn::models
