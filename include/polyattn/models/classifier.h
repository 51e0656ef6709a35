// Classifier of sequences of tokens, of different lengths in a batch: tokens,
// positions, blocks, norm, head. It sees the whole sequence and no padding.
//
//   SequenceClassifier model(
//       classifier_options("lra").vocabulary(16).context(256).classes(10));
//   torch::Tensor logits = model->forward(tokens, lengths);  // [B, N], [B]
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

#include "polyattn/nn/block.h"
#include "polyattn/nn/embedding.h"

namespace polyattn::models {

struct SequenceClassifierOptions {
  SequenceClassifierOptions(std::int64_t dim, std::int64_t depth,
                            std::int64_t heads)
      : depth_(depth), block_(dim, heads) {}

  TORCH_ARG(std::int64_t, depth);
  // Width, heads, activation, mlp and all that concerns a layer. Its drop_path
  // is set by the model. It must not be causal.
  TORCH_ARG(nn::BlockOptions, block);
  // Bytes, and one for padding.
  TORCH_ARG(std::int64_t, vocabulary) = 257;
  // Learned positions: the longest sequence. Rotary positions have no limit.
  TORCH_ARG(std::int64_t, context) = 1024;
  TORCH_ARG(std::int64_t, classes) = 2;
  // learned, or rotary (by block().attention().rotary() if that is set).
  TORCH_ARG(std::string, positions) = "learned";
  // What the head reads: mean (of the rows of a sequence, without its padding),
  // class (the row of a class token, which is put before the sequence), or
  // padded (the sum of the rows without padding, divided by context, as if all
  // sequences were padded to it with zeros).
  TORCH_ARG(std::string, pooling) = "mean";
  // Token 0 is padding wherever it stands.
  TORCH_ARG(bool, mask_zeros) = false;
  // Sequences of an example: 1, or 2, whose rows a and b are read by one model,
  // and of which the head reads [a, b, a * b, a - b].
  TORCH_ARG(std::int64_t, towers) = 1;
  // linear, or mlp: a hidden layer as wide as that of the blocks, and relu.
  TORCH_ARG(std::string, head) = "linear";
  // Of the embedded tokens.
  TORCH_ARG(double, dropout) = 0;
  // Of the last block; it grows linearly from 0 at the first.
  TORCH_ARG(double, drop_path) = 0;
  // polyattn/nn/initialise.h.
  TORCH_ARG(std::string, initialisation) = "vit";
  TORCH_ARG(double, qk_gain) = 1;

 public:
  SequenceClassifierOptions& activation(const std::string& formula) {
    block_.attention().activation(formula);
    return *this;
  }
};

// lra (the layers of Nystromformer's models for Long Range Arena), lra-small
// (four of them). docs/models.md has their sizes, and lra.h those models as
// they are.
SequenceClassifierOptions classifier_options(const std::string& name);
std::vector<std::string> classifier_names();

class SequenceClassifierImpl
    : public torch::nn::Cloneable<SequenceClassifierImpl> {
 public:
  explicit SequenceClassifierImpl(const SequenceClassifierOptions& options_);

  void reset() override;

  // Integers [B, N], and how many of each row are no padding, i64 [B] ->
  // [B, classes]; of two towers [B / 2, classes], where rows 2 i and 2 i + 1
  // are a pair. What the padding holds does not matter, so long as it is in the
  // vocabulary. Without lengths all rows are full. Lengths on the CPU are
  // checked, and need no mask if all rows are full; elsewhere looking at them
  // would wait for the device. With block().nystrom() sequences are padded to
  // the context first: a batch does not decide what a landmark is the mean of.
  torch::Tensor forward(const torch::Tensor& tokens,
                        const torch::Tensor& lengths = {});

  // The rows of the sequences: [B, dim].
  torch::Tensor features(const torch::Tensor& tokens,
                         const torch::Tensor& lengths = {});

  SequenceClassifierOptions options;
  nn::TokenEmbedding tokens{nullptr};
  nn::ClassToken class_token{nullptr};
  nn::PositionEmbedding positions{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  nn::Norm norm{nullptr};
  torch::nn::Linear head_hidden{nullptr};
  torch::nn::Linear head{nullptr};

 private:
  torch::Tensor embed(const torch::Tensor& tokens_);
  torch::Tensor pool(const torch::Tensor& x, const torch::Tensor& mask);
};

TORCH_MODULE(SequenceClassifier);

}  // namespace polyattn::models
