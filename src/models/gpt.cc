#include "polyattn/models/gpt.h"

#include <algorithm>

#include "models/drop_path.h"
#include "models/named_options.h"
#include "nn/choice.h"
#include "polyattn/nn/initialise.h"

namespace polyattn::models {
namespace {

GptOptions gpt2_size(std::int64_t dim, std::int64_t depth, std::int64_t heads) {
  return GptOptions(dim, depth, heads).vocabulary(50257).context(1024);
}

NamedOptions<GptOptions> named_gpts() {
  return {
      {"bytes-tiny", GptOptions(128, 4, 4).context(128)},
      {"bytes-small", GptOptions(384, 6, 6)},
      {"gpt2", gpt2_size(768, 12, 12)},
      {"gpt2-medium", gpt2_size(1024, 24, 16)},
  };
}

void check(const GptOptions& o) {
  TORCH_CHECK(o.depth() > 0, "[Gpt] depth ", o.depth(), " < 1");
  TORCH_CHECK(o.vocabulary() > 0, "[Gpt] vocabulary ", o.vocabulary(), " < 1");
  TORCH_CHECK(o.context() > 0, "[Gpt] context ", o.context(), " < 1");
  nn::check_choice("Gpt", "positions", o.positions(), {"learned", "rotary"});
  nn::check_rate("Gpt", "dropout", o.dropout());
  nn::check_rate("Gpt", "drop_path", o.drop_path());
  TORCH_CHECK(o.positions() == "rotary" || !o.block().attention().rotary(),
              "[Gpt] positions \"learned\", but the attention is rotary");
}

nn::BlockOptions block_options(const GptOptions& o, std::int64_t i) {
  nn::BlockOptions block = o.block();
  block.drop_path(drop_path_of(o.drop_path(), i, o.depth()));
  block.attention().causal(true);
  if (o.positions() == "rotary" && !block.attention().rotary()) {
    block.attention().rotary(nn::RotaryOptions());
  }
  return block;
}

void check_targets(const torch::Tensor& tokens, const torch::Tensor& targets) {
  TORCH_CHECK(targets.sizes() == tokens.sizes(), "[Gpt] targets of size ",
              targets.sizes(), " != ", tokens.sizes(), " of tokens");
}

// With 50257 tokens, 200 MB.
constexpr std::int64_t kRowsOfLogits = 1024;

}  // namespace

GptOptions::GptOptions(std::int64_t dim, std::int64_t depth, std::int64_t heads)
    : depth_(depth), block_(dim, heads) {
  block_.mlp().approximate("tanh");
}

GptOptions gpt_options(const std::string& name) {
  return find_options("gpt_options", named_gpts(), name);
}

std::vector<std::string> gpt_names() { return names_of(named_gpts()); }

GptImpl::GptImpl(const GptOptions& options_) : options(options_) {
  check(options);
  GptImpl::reset();
}

void GptImpl::reset() {
  const std::int64_t dim = options.block().dim();
  tokens = register_module("tokens", nn::TokenEmbedding(nn::TableOptions(
                                         options.vocabulary(), dim)));
  if (options.positions() == "learned") {
    positions = register_module(
        "positions",
        nn::PositionEmbedding(nn::TableOptions(options.context(), dim)));
  }
  blocks = register_module("blocks", torch::nn::ModuleList());
  for (std::int64_t i = 0; i < options.depth(); ++i) {
    blocks->push_back(nn::Block(block_options(options, i)));
  }
  norm = register_module("norm", nn::Norm(options.block().norm_options()));
  if (!options.tied()) {
    head = register_module(
        "head",
        torch::nn::Linear(
            torch::nn::LinearOptions(dim, options.vocabulary()).bias(false)));
  }
  nn::initialise(*this, nn::InitialiseOptions(options.initialisation())
                            .qk_gain(options.qk_gain()));
}

torch::Tensor GptImpl::embed(const torch::Tensor& tokens_, std::int64_t first) {
  TORCH_CHECK(tokens_.dim() == 2, "[Gpt] tokens of size ", tokens_.sizes(),
              " are not [B, N]");
  const std::int64_t end = first + tokens_.size(1);
  TORCH_CHECK(!positions || end <= options.context(), "[Gpt] a sequence of ",
              end, " tokens is longer than the context ", options.context(),
              " for which positions were learned");
  torch::Tensor x = tokens->forward(tokens_);
  if (positions) x = positions->forward(x, first);
  return torch::dropout(x, options.dropout(), is_training());
}

torch::Tensor GptImpl::logits(const torch::Tensor& x) {
  const torch::Tensor y = norm->forward(x);
  return head ? head->forward(y) : tokens->logits(y);
}

torch::Tensor GptImpl::through_blocks(const torch::Tensor& tokens_) {
  torch::Tensor x = embed(tokens_, 0);
  for (const auto& block : *blocks) {
    x = block->as<nn::BlockImpl>()->forward(x);
  }
  return x;
}

torch::Tensor GptImpl::forward(const torch::Tensor& tokens_) {
  return logits(through_blocks(tokens_));
}

template <typename Cache>
torch::Tensor GptImpl::forward_cached(const torch::Tensor& tokens_,
                                      std::vector<Cache>& caches) {
  TORCH_CHECK(caches.size() == blocks->size(), "[Gpt] ", caches.size(),
              " caches for ", blocks->size(), " blocks");
  torch::Tensor x = embed(tokens_, caches.front().length());
  for (std::size_t i = 0; i < caches.size(); ++i) {
    x = blocks->at<nn::BlockImpl>(i).forward(x, caches[i]);
  }
  return logits(x);
}

torch::Tensor GptImpl::forward(const torch::Tensor& tokens_,
                               std::vector<nn::KvCache>& caches) {
  return forward_cached(tokens_, caches);
}

torch::Tensor GptImpl::forward(const torch::Tensor& tokens_,
                               std::vector<nn::DecodeCache>& caches) {
  return forward_cached(tokens_, caches);
}

std::vector<nn::DecodeCache> GptImpl::make_decode_caches(
    DecodeMode mode) const {
  return std::vector<nn::DecodeCache>(blocks->size(), nn::DecodeCache(mode));
}

std::vector<nn::KvCache> GptImpl::make_caches() const {
  return std::vector<nn::KvCache>(blocks->size());
}

torch::Tensor GptImpl::loss(const torch::Tensor& tokens_,
                            const torch::Tensor& targets) {
  check_targets(tokens_, targets);
  return torch::cross_entropy_loss(forward(tokens_).flatten(0, 1),
                                   targets.flatten().to(torch::kLong));
}

TokenScores GptImpl::score(const torch::Tensor& tokens_,
                           const torch::Tensor& targets) {
  check_targets(tokens_, targets);
  const torch::Tensor rows = through_blocks(tokens_).flatten(0, 1);
  const torch::Tensor wanted = targets.flatten().to(torch::kLong);
  std::vector<torch::Tensor> losses, hits;
  for (std::int64_t i = 0; i < rows.size(0); i += kRowsOfLogits) {
    const std::int64_t count = std::min(kRowsOfLogits, rows.size(0) - i);
    const torch::Tensor own =
        logits(rows.narrow(0, i, count)).to(torch::kFloat);
    const torch::Tensor target = wanted.narrow(0, i, count);
    losses.push_back(
        torch::cross_entropy_loss(own, target, {}, at::Reduction::None));
    hits.push_back(own.argmax(1).eq(target));
  }
  return {torch::cat(losses).view(targets.sizes()),
          torch::cat(hits).view(targets.sizes())};
}

}  // namespace polyattn::models
