#include "polyattn/models/classifier.h"

#include "models/drop_path.h"
#include "models/named_options.h"
#include "nn/choice.h"
#include "polyattn/nn/initialise.h"

namespace polyattn::models {
namespace {

SequenceClassifierOptions lra_size(std::int64_t depth) {
  SequenceClassifierOptions options(64, depth, 2);
  options.block().mlp().hidden(128);
  return options;
}

NamedOptions<SequenceClassifierOptions> named_classifiers() {
  return {{"lra", lra_size(2)}, {"lra-small", lra_size(4)}};
}

void check(const SequenceClassifierOptions& o) {
  const char* const op = "SequenceClassifier";
  TORCH_CHECK(o.depth() > 0, '[', op, "] depth ", o.depth(), " < 1");
  TORCH_CHECK(o.vocabulary() > 0, '[', op, "] vocabulary ", o.vocabulary(),
              " < 1");
  TORCH_CHECK(o.context() > 0, '[', op, "] context ", o.context(), " < 1");
  TORCH_CHECK(o.classes() > 0, '[', op, "] classes ", o.classes(), " < 1");
  nn::check_choice(op, "positions", o.positions(), {"learned", "rotary"});
  nn::check_choice(op, "pooling", o.pooling(), {"mean", "class", "padded"});
  nn::check_choice(op, "head", o.head(), {"linear", "mlp"});
  TORCH_CHECK(o.towers() == 1 || o.towers() == 2, '[', op, "] towers ",
              o.towers(), " are neither 1 nor 2");
  TORCH_CHECK(o.pooling() != "padded" || o.positions() == "learned", '[', op,
              "] pooling \"padded\" needs positions \"learned\", which say how "
              "long a padded sequence is");
  nn::check_rate(op, "dropout", o.dropout());
  nn::check_rate(op, "drop_path", o.drop_path());
  TORCH_CHECK(!o.block().attention().causal(), '[', op,
              "] the attention is causal: no row but the last would see the "
              "whole sequence");
  TORCH_CHECK(
      !o.block().nystrom() || o.block().nystrom()->landmarks() <= o.context(),
      '[', op, "] landmarks ", o.block().nystrom()->landmarks(),
      " are more than the context ", o.context(), " has tokens");
  TORCH_CHECK(o.positions() == "rotary" || !o.block().attention().rotary(), '[',
              op, "] positions \"learned\", but the attention is rotary");
}

nn::BlockOptions block_options(const SequenceClassifierOptions& o,
                               std::int64_t i) {
  nn::BlockOptions block = o.block();
  if (o.positions() == "rotary" && !block.attention().rotary()) {
    block.attention().rotary(nn::RotaryOptions());
  }
  block.drop_path(drop_path_of(o.drop_path(), i, o.depth()));
  return block;
}

void check_lengths(const torch::Tensor& lengths, const torch::Tensor& tokens) {
  TORCH_CHECK(lengths.dim() == 1 && lengths.size(0) == tokens.size(0),
              "[SequenceClassifier] lengths of size ", lengths.sizes(),
              " are not [", tokens.size(0), "], one for each sequence");
  TORCH_CHECK(lengths.scalar_type() == torch::kLong ||
                  lengths.scalar_type() == torch::kInt,
              "[SequenceClassifier] lengths of type ", lengths.scalar_type(),
              " are neither i64 nor i32");
  if (!lengths.is_cpu() || lengths.numel() == 0) return;
  const auto least = lengths.min().item<std::int64_t>();
  const auto most = lengths.max().item<std::int64_t>();
  TORCH_CHECK(least >= 1 && most <= tokens.size(1),
              "[SequenceClassifier] length ", least < 1 ? least : most,
              " is not in [1, ", tokens.size(1), "]");
}

// A sequence of which every row is masked has no mean.
void check_some_token(const torch::Tensor& mask) {
  if (!mask.is_cpu()) return;
  const torch::Tensor some = mask.any(1);
  if (some.all().item<bool>()) return;
  TORCH_CHECK(false, "[SequenceClassifier] sequence ",
              some.logical_not().nonzero()[0].item<std::int64_t>(),
              " holds nothing but zeros, which are masked");
}

// True for tokens, false for padding: [B, N]. Undefined if there is no padding.
torch::Tensor length_mask(const torch::Tensor& lengths,
                          const torch::Tensor& tokens) {
  if (!lengths.defined()) return {};
  check_lengths(lengths, tokens);
  const std::int64_t n = tokens.size(1);
  if (lengths.is_cpu() && lengths.eq(n).all().item<bool>()) return {};
  const torch::Tensor places =
      torch::arange(n, torch::dtype(torch::kLong).device(tokens.device()));
  return places.unsqueeze(0) < lengths.to(tokens.device()).unsqueeze(1);
}

torch::Tensor token_mask(const torch::Tensor& lengths,
                         const torch::Tensor& tokens, bool mask_zeros) {
  const torch::Tensor mask = length_mask(lengths, tokens);
  if (!mask_zeros) return mask;
  const torch::Tensor some = tokens.ne(0);
  const torch::Tensor both = mask.defined() ? some.logical_and(mask) : some;
  check_some_token(both);
  return both;
}

// Of the rows [B, N, C] where the mask [B, N] is true. Padding is filled, not
// multiplied by 0, for it may hold infinities.
torch::Tensor masked_sum(const torch::Tensor& x, const torch::Tensor& mask) {
  if (!mask.defined()) return x.sum(1);
  return x.masked_fill(mask.logical_not().unsqueeze(2), 0).sum(1);
}

torch::Tensor masked_mean(const torch::Tensor& x, const torch::Tensor& mask) {
  if (!mask.defined()) return x.mean(1);
  return masked_sum(x, mask) /
         mask.sum(1, /*keepdim=*/true).to(x.scalar_type());
}

// [2 B, C], a pair in rows 2 i and 2 i + 1 -> [B, 4 C].
torch::Tensor compare_pairs(const torch::Tensor& rows) {
  const torch::Tensor pairs = rows.unflatten(0, {rows.size(0) / 2, 2});
  const torch::Tensor a = pairs.select(1, 0), b = pairs.select(1, 1);
  return torch::cat({a, b, a * b, a - b}, 1);
}

}  // namespace

SequenceClassifierOptions classifier_options(const std::string& name) {
  return find_options("classifier_options", named_classifiers(), name);
}

std::vector<std::string> classifier_names() {
  return names_of(named_classifiers());
}

SequenceClassifierImpl::SequenceClassifierImpl(
    const SequenceClassifierOptions& options_)
    : options(options_) {
  check(options);
  SequenceClassifierImpl::reset();
}

void SequenceClassifierImpl::reset() {
  const std::int64_t dim = options.block().dim();
  const bool by_class = options.pooling() == "class";
  tokens = register_module("tokens", nn::TokenEmbedding(nn::TableOptions(
                                         options.vocabulary(), dim)));
  if (by_class) {
    class_token = register_module("class_token", nn::ClassToken(dim));
  }
  if (options.positions() == "learned") {
    const nn::TableOptions table(options.context() + (by_class ? 1 : 0), dim);
    positions = register_module("positions", nn::PositionEmbedding(table));
  }
  blocks = register_module("blocks", torch::nn::ModuleList());
  for (std::int64_t i = 0; i < options.depth(); ++i) {
    blocks->push_back(nn::Block(block_options(options, i)));
  }
  norm = register_module("norm", nn::Norm(options.block().norm_options()));
  const std::int64_t read = options.towers() == 2 ? 4 * dim : dim;
  const std::int64_t hidden = options.block().mlp().hidden();
  const bool two_layers = options.head() == "mlp";
  if (two_layers) {
    head_hidden =
        register_module("head_hidden", torch::nn::Linear(read, hidden));
  }
  head = register_module(
      "head", torch::nn::Linear(two_layers ? hidden : read, options.classes()));
  nn::initialise(*this, nn::InitialiseOptions(options.initialisation())
                            .qk_gain(options.qk_gain()));
}

torch::Tensor SequenceClassifierImpl::embed(const torch::Tensor& tokens_) {
  torch::Tensor x = tokens->forward(tokens_);
  if (class_token) x = class_token->forward(x);
  if (positions) x = positions->forward(x);
  return torch::dropout(x, options.dropout(), is_training());
}

torch::Tensor SequenceClassifierImpl::features(const torch::Tensor& tokens_,
                                               const torch::Tensor& lengths) {
  const std::int64_t context = options.context();
  if (options.block().nystrom() && tokens_.dim() == 2 && tokens_.size(1) > 0 &&
      tokens_.size(1) < context) {
    const std::int64_t n = tokens_.size(1);
    if (lengths.defined()) check_lengths(lengths, tokens_);
    return features(torch::constant_pad_nd(tokens_, {0, context - n}),
                    lengths.defined()
                        ? lengths
                        : torch::full({tokens_.size(0)}, n, torch::kLong));
  }
  TORCH_CHECK(tokens_.dim() == 2 && tokens_.size(1) > 0,
              "[SequenceClassifier] tokens of size ", tokens_.sizes(),
              " are not [B, N] with N > 0");
  TORCH_CHECK(!positions || tokens_.size(1) <= options.context(),
              "[SequenceClassifier] a sequence of ", tokens_.size(1),
              " tokens is longer than the context ", options.context(),
              " for which positions were learned");
  torch::Tensor mask = token_mask(lengths, tokens_, options.mask_zeros());
  if (mask.defined() && class_token) {
    mask = torch::constant_pad_nd(mask, {1, 0}, true);
  }
  torch::Tensor x = embed(tokens_);
  const torch::Tensor keys =
      mask.defined() ? mask.unsqueeze(1).unsqueeze(1) : mask;  // [B, 1, 1, N]
  for (const auto& block : *blocks) {
    x = block->as<nn::BlockImpl>()->forward(x, keys);
  }
  return pool(norm->forward(x), mask);
}

torch::Tensor SequenceClassifierImpl::pool(const torch::Tensor& x,
                                           const torch::Tensor& mask) {
  if (class_token) return x.select(1, 0);
  if (options.pooling() == "mean") return masked_mean(x, mask);
  return masked_sum(x, mask) / static_cast<double>(options.context());
}

torch::Tensor SequenceClassifierImpl::forward(const torch::Tensor& tokens_,
                                              const torch::Tensor& lengths) {
  torch::Tensor rows = features(tokens_, lengths);
  if (options.towers() == 2) {
    TORCH_CHECK(rows.size(0) % 2 == 0, "[SequenceClassifier] ", rows.size(0),
                " sequences are no pairs");
    rows = compare_pairs(rows);
  }
  if (head_hidden) rows = torch::relu(head_hidden->forward(rows));
  return head->forward(rows);
}

}  // namespace polyattn::models
