// A start for attention without softmax: first scores that are small enough.
//
// A power of scores of size one is large: x^3/sqrt(N) starts with a norm of
// sqrt(15 N), where softmax has about one, and trains badly (docs/theory.md).
// What a formula gives varies from head to head, so it is measured: on a batch,
// layer by layer, each head gets the factor of its scores at which its
// ||A||_F is that of softmax on the same scores.
//
//   auto start = nn::match_start(*model, [&] { model->forward(batch); });
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <vector>

namespace polyattn::nn {

// The start of one head. Norms are ||A||_F, means over the batch; of causal
// attention those of its last rows.
struct HeadStart {
  double gain = 1;     // of the scores, at most 1
  double before = 0;   // the norm as it was
  double after = 0;    // and as it is
  double softmax = 0;  // what softmax has on the scores as they are now
};

using LayerStart = std::vector<HeadStart>;

// Shrinks the scores of every attention inside the module that is not softmax,
// so that each norm is `factor` times that of softmax, and returns what it did,
// in the order in which the layers ran. `forward` runs the module on a batch,
// once. Heads that are below already stay as they are; so do those that no
// scale brings there, as 1 + x does, whose norm is large at scores of zero.
// BatchNorms compute by the batch, as in training, and forget it again.
//
// The gain goes where the module keeps the scale of its scores
// (AttentionBase::apply_gains). In Attention that is score_scale where it is
// learned; otherwise in equal parts the rows of in_proj that make q and k,
// where heads that share their keys share the part of k; with norms of q and k
// these, which all heads share, so that they get the mean of their gains.
// Throws c10::Error if a norm is not finite, with nothing changed in that
// layer.
std::vector<LayerStart> match_start(torch::nn::Module& module,
                                    const std::function<void()>& forward,
                                    double factor = 1);

}  // namespace polyattn::nn
