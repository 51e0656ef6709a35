#include "polyattn/nn/match.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "nn/root_search.h"
#include "polyattn/nn/attention.h"

namespace polyattn::nn {
namespace {

// Scores that are enough to measure a head by: more only take longer.
constexpr std::int64_t kEnoughScores = 1 << 22;

// Of the rows of causal attention, those that are measured: the last ones, in
// which a row sees about all keys. The first rows of softmax have a norm near
// one, whatever its scores are.
constexpr std::int64_t kCausalShare = 8;

std::vector<double> to_vector(const torch::Tensor& values) {
  const torch::Tensor dense = values.to(torch::kDouble).contiguous();
  return {dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel()};
}

torch::Tensor gain_column(const std::vector<double>& values,
                          const torch::Tensor& like) {
  return torch::tensor(values, torch::kDouble)
      .to(like.options())
      .view({-1, 1, 1});
}

struct HeadNorms {
  std::vector<double> own, softmax;  // by head
};

// The norms of a layer, for scores that are multiplied by a gain for each head.
class MeasuredLayer {
 public:
  MeasuredLayer(torch::Tensor q, torch::Tensor k,
                polyattn::AttentionOptions call)
      : q_(std::move(q)), k_(std::move(k)), call_(std::move(call)) {
    call_.dropout(0);
    const std::int64_t scores = q_.size(1) * q_.size(2) * k_.size(2);
    const std::int64_t batch = std::clamp<std::int64_t>(
        kEnoughScores / std::max<std::int64_t>(scores, 1), 1, q_.size(0));
    if (!call_.mask()) {
      q_ = q_.narrow(0, 0, batch);
      k_ = k_.narrow(0, 0, batch);
      if (call_.causal() != Causal::kNone) keep_last_rows();
    }
    softmax_ = polyattn::AttentionOptions(call_).activation("softmax");
    softmax_.coefficients(c10::nullopt);
  }

  HeadNorms at(const std::vector<double>& gains) const {
    const torch::Tensor q = q_ * gain_column(gains, q_);
    return {norms(q, call_), norms(q, softmax_)};
  }

 private:
  void keep_last_rows() {
    const std::int64_t rows = (q_.size(2) + kCausalShare - 1) / kCausalShare;
    q_ = q_.narrow(2, q_.size(2) - rows, rows);
    call_.causal(Causal::kLast);
  }

  std::vector<double> norms(const torch::Tensor& q,
                            const polyattn::AttentionOptions& call) const {
    return to_vector(
        polyattn::attention_with_norms(q, k_, k_.narrow(-1, 0, 1), call)
            .norms.weight.mean(0));
  }

  torch::Tensor q_, k_;
  polyattn::AttentionOptions call_, softmax_;
};

void check_norms(const std::vector<double>& norms, std::size_t layer) {
  for (std::size_t h = 0; h < norms.size(); ++h) {
    TORCH_CHECK(std::isfinite(norms[h]), "[match_start] layer ", layer,
                ", head ", h, ": the norm of the attention weights is ",
                norms[h], ": are inputs and weights finite?");
  }
}

// The logarithm of what a norm is too large by.
std::vector<double> excess(const HeadNorms& norms, double factor) {
  std::vector<double> result(norms.own.size());
  for (std::size_t h = 0; h < result.size(); ++h) {
    // All weights are zero: nothing to shrink.
    result[h] = norms.own[h] == 0 ? -std::numeric_limits<double>::infinity()
                                  : std::log(norms.own[h]) -
                                        std::log(factor * norms.softmax[h]);
  }
  return result;
}

// Of the gains, what one part that all heads of a group share can take: the
// square root of their mean, in logarithms.
std::vector<double> shared_part(const std::vector<double>& gains,
                                std::size_t groups) {
  const std::size_t each = gains.size() / groups;
  std::vector<double> part(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    double sum = 0;
    for (std::size_t i = 0; i < each; ++i) sum += std::log(gains[g * each + i]);
    part[g] = std::exp(sum / static_cast<double>(2 * each));
  }
  return part;
}

void scale_rows(const AttentionImpl& a, std::int64_t first,
                const std::vector<double>& factors) {
  for (torch::Tensor rows : {a.in_proj_weight, a.in_proj_bias}) {
    if (!rows.defined()) continue;
    const auto count = static_cast<std::int64_t>(factors.size());
    torch::Tensor part = rows.narrow(0, first, count * a.head_dim())
                             .view({count, a.head_dim(), -1});
    part.mul_(gain_column(factors, part));
  }
}

// Puts the gains where the module keeps them, and returns what became of them.
std::vector<double> apply_gains(AttentionImpl& a, std::vector<double> gains) {
  if (a.score_scale.defined()) {
    a.score_scale.mul_(gain_column(gains, a.score_scale).flatten());
    return gains;
  }
  if (a.q_norm) {
    const double part = shared_part(gains, 1).front();
    a.q_norm->weight.mul_(part);
    a.k_norm->weight.mul_(part);
    return std::vector<double>(gains.size(), part * part);
  }
  const auto groups = static_cast<std::size_t>(a.kv_heads());
  const std::vector<double> of_k = shared_part(gains, groups);
  std::vector<double> of_q(gains.size());
  for (std::size_t h = 0; h < gains.size(); ++h) {
    of_q[h] = gains[h] / of_k[h / (gains.size() / groups)];
  }
  scale_rows(a, 0, of_q);
  scale_rows(a, a.options.heads() * a.head_dim(), of_k);
  return gains;
}

LayerStart match_layer(AttentionImpl& attention, const MeasuredLayer& layer,
                       double factor, std::size_t index) {
  const auto heads = static_cast<std::size_t>(attention.options.heads());
  const HeadNorms before = layer.at(std::vector<double>(heads, 1.0));
  check_norms(before.softmax, index);  // a power may overflow, and be shrunk
  const int degree = Activation::parse(attention.options.activation()).degree;
  const std::vector<double> logs = roots_below_zero(
      excess(before, factor),
      [&](const std::vector<double>& x) {
        std::vector<double> gains(x.size());
        std::transform(x.begin(), x.end(), gains.begin(),
                       [](double log) { return std::exp(log); });
        return excess(layer.at(gains), factor);
      },
      std::max(degree, 1));
  std::vector<double> gains(heads);
  std::transform(logs.begin(), logs.end(), gains.begin(),
                 [](double log) { return std::exp(log); });
  check_norms(layer.at(gains).own, index);
  gains = apply_gains(attention, std::move(gains));
  const HeadNorms after = layer.at(gains);
  LayerStart start(heads);
  for (std::size_t h = 0; h < heads; ++h) {
    start[h] = {gains[h], before.own[h], after.own[h], after.softmax[h]};
  }
  return start;
}

}  // namespace

std::vector<LayerStart> match_start(torch::nn::Module& module,
                                    const std::function<void()>& forward,
                                    double factor) {
  TORCH_CHECK(factor > 0 && std::isfinite(factor), "[match_start] factor ",
              factor, " is no finite number above 0");
  const torch::NoGradGuard no_grad;
  std::vector<LayerStart> starts;
  const auto layers = attention_layers(module);
  for (AttentionImpl* layer : layers) {
    if (Activation::parse(layer->options.activation()).kind ==
        ActivationKind::kSoftmax) {
      continue;
    }
    layer->before_weights_ = [layer, factor, &starts](const auto& q,
                                                      const auto& k,
                                                      const auto& call) {
      starts.push_back(match_layer(*layer, MeasuredLayer(q, k, call), factor,
                                   starts.size()));
      std::vector<double> gains;
      for (const HeadStart& head : starts.back()) gains.push_back(head.gain);
      return q * gain_column(gains, q);
    };
  }
  const auto done = [&] {
    for (AttentionImpl* layer : layers) layer->before_weights_ = nullptr;
  };
  try {
    forward();
  } catch (...) {
    done();
    throw;
  }
  done();
  return starts;
}

}  // namespace polyattn::nn
