// What every attention of a model has in common, whatever its rows are: how it
// is found, watched and given its start.
//
//   for (nn::AttentionBase* layer : nn::attention_layers(*model)) {
//     layer->watch_norms(true);
//   }
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "polyattn/nn/match.h"
#include "polyattn/torch/attention.h"

namespace polyattn::nn {

struct OtherOps;  // src/nn/other_ops.h, for benchmarks

class AttentionBase : public virtual torch::nn::Module {
 public:
  // What its rows are: "token", those of the whole sequence; "nystrom", the
  // same by way of landmarks; "window", tokens that see their window;
  // "channel"; "class", a class token that sees all.
  virtual std::string kind() const = 0;

  // The formula.
  virtual const std::string& activation() const = 0;
  virtual std::int64_t heads() const = 0;

  // Multiplies the scores of each head by its gain, where the module keeps
  // their scale, and returns the gains that came of it: heads may share what
  // they are scaled by.
  virtual std::vector<double> apply_gains(std::vector<double> gains) = 0;

  // While on, every call also computes the norms of its attention matrices.
  void watch_norms(bool on);

  // Those of the last call, each [B, H], where B counts windows too; empty if
  // it was not watched.
  const std::optional<AttentionNorms>& norms() const { return norms_; }

  // Keys of that call: M, of a window those of the window.
  std::int64_t keys() const { return keys_; }

  // While there is a formula, every call also computes the norms that this
  // activation would have on the same queries and keys. Empty: none.
  void watch_other(const std::string& formula);
  const std::optional<AttentionNorms>& other_norms() const {
    return other_norms_;
  }

  // While on, every call also computes its attention matrices, for looking at:
  // N x M in memory, and about as many more operations as the call has.
  void watch_weights(bool on);

  // A of the last call, [..., H, N, M]; undefined if it was not watched.
  const torch::Tensor& weights() const { return weights_; }

  // The part of the model that it stands in, where sizes differ between parts.
  std::int64_t stage = 0;

 protected:
  // [..., H, N, D], [..., G, M, D], [..., G, M, D].
  struct Heads {
    torch::Tensor q, k, v;
  };

  // The operation itself, by default polyattn::attention. What stands in for it
  // has norms and matrices of its own, to be watched and matched.
  virtual torch::Tensor compute(const Heads& heads,
                                const polyattn::AttentionOptions& call) const;
  virtual AttentionWithNorms compute_with_norms(
      const Heads& heads, const polyattn::AttentionOptions& call) const;

  // compute(), and what is watched beside it. The queries are the caller's to
  // read again: match_start() may put others in their place.
  torch::Tensor watched_attention(Heads& heads,
                                  const polyattn::AttentionOptions& call);

  std::optional<AttentionNorms> norms_;
  torch::Tensor weights_;
  std::function<torch::Tensor(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v,
                              const polyattn::AttentionOptions& options)>
      other_op_;  // in place of polyattn::attention

 private:
  friend void replace_ops(torch::nn::Module& module, const OtherOps& ops);
  friend std::vector<LayerStart> match_start(
      torch::nn::Module& module, const std::function<void()>& forward,
      double factor);

  void look_closer(const Heads& heads, const polyattn::AttentionOptions& call);

  // Queries in place of q, while match_start() looks at a call.
  std::function<torch::Tensor(const torch::Tensor& q, const torch::Tensor& k,
                              const polyattn::AttentionOptions& options)>
      before_weights_;
  std::optional<AttentionNorms> other_norms_;
  std::string other_;
  std::int64_t keys_ = 0;
  bool watching_ = false;
  bool watching_weights_ = false;
};

// The attention modules inside a module, itself included, in the order of their
// registration.
std::vector<AttentionBase*> attention_layers(torch::nn::Module& module);

}  // namespace polyattn::nn
