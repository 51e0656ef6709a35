#include "polyattn/nn/match.h"

#include <c10/util/accumulate.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "nn/gains.h"
#include "nn/root_search.h"
#include "polyattn/nn/attention_base.h"

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

struct HeadNorms {
  std::vector<double> own, softmax;  // by head
};

// The norms ||A||_F [..., H] that a layer has of q and k.
using NormsOf =
    std::function<torch::Tensor(const torch::Tensor& q, const torch::Tensor& k,
                                const polyattn::AttentionOptions& call)>;

// The norms of a layer, for scores that are multiplied by a gain for each head.
class MeasuredLayer {
 public:
  MeasuredLayer(NormsOf norms_of, torch::Tensor q, torch::Tensor k,
                polyattn::AttentionOptions call)
      : norms_of_(std::move(norms_of)),
        q_(std::move(q)),
        k_(std::move(k)),
        call_(std::move(call)) {
    call_.dropout(0);
    if (!by_example(call_.mask()) && !by_example(call_.bias())) {
      keep_first_examples();
    }
    if (call_.causal() != Causal::kNone && !call_.mask() && !call_.bias()) {
      keep_last_rows();
    }
    softmax_ = polyattn::AttentionOptions(call_).activation("softmax");
    softmax_.coefficients(c10::nullopt);
    softmax_.log_decay(c10::nullopt);
  }

  HeadNorms at(const std::vector<double>& gains) const {
    const torch::Tensor q = q_ * gain_column(gains, q_);
    return {norms(q, call_), norms(q, softmax_)};
  }

 private:
  bool by_example(const c10::optional<torch::Tensor>& extra) const {
    return extra && extra->dim() == q_.dim();
  }

  // log_decay has one dimension less than the keys.
  bool by_example_of_keys(const c10::optional<torch::Tensor>& decay) const {
    return decay && decay->dim() == k_.dim() - 1;
  }

  void keep_first_examples() {
    const std::int64_t rows =
        c10::multiply_integers(q_.sizes().slice(1, q_.dim() - 2));
    const std::int64_t batch = std::clamp<std::int64_t>(
        kEnoughScores / std::max<std::int64_t>(rows * k_.size(-2), 1), 1,
        q_.size(0));
    q_ = q_.narrow(0, 0, batch);
    k_ = k_.narrow(0, 0, batch);
    if (by_example_of_keys(call_.log_decay()))
      call_.log_decay(call_.log_decay()->narrow(0, 0, batch));
  }

  void keep_last_rows() {
    const std::int64_t n = q_.size(-2);
    const std::int64_t rows = (n + kCausalShare - 1) / kCausalShare;
    q_ = q_.narrow(-2, n - rows, rows);
    call_.causal(Causal::kLast);
  }

  std::vector<double> norms(const torch::Tensor& q,
                            const polyattn::AttentionOptions& call) const {
    return to_vector(norms_of_(q, k_, call).flatten(0, -2).mean(0));
  }

  NormsOf norms_of_;
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

// While it lives, the BatchNorms inside a module compute by the batch, as in
// training: what they have seen so far is nothing. They forget the batch again.
class BatchStatistics {
 public:
  explicit BatchStatistics(torch::nn::Module& module) {
    for (const auto& child : module.modules(/*include_self=*/false)) {
      auto* const norm = child->as<torch::nn::BatchNorm2dImpl>();
      if (norm == nullptr || norm->is_training()) continue;
      kept_.push_back({norm, copies_of(norm->buffers())});
      norm->train();
    }
  }
  ~BatchStatistics() {
    const torch::NoGradGuard no_grad;
    for (Kept& kept : kept_) {
      const auto buffers = kept.norm->buffers();
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        torch::Tensor(buffers[i]).copy_(kept.buffers[i]);
      }
      kept.norm->eval();
    }
  }
  BatchStatistics(const BatchStatistics&) = delete;
  BatchStatistics& operator=(const BatchStatistics&) = delete;

 private:
  struct Kept {
    torch::nn::BatchNorm2dImpl* norm;
    std::vector<torch::Tensor> buffers;
  };

  static std::vector<torch::Tensor> copies_of(
      std::vector<torch::Tensor> buffers) {
    for (torch::Tensor& buffer : buffers) buffer = buffer.clone();
    return buffers;
  }

  std::vector<Kept> kept_;
};

LayerStart match_layer(AttentionBase& attention, const MeasuredLayer& layer,
                       double factor, std::size_t index) {
  const auto heads = static_cast<std::size_t>(attention.heads());
  const HeadNorms before = layer.at(std::vector<double>(heads, 1.0));
  check_norms(before.softmax, index);  // a power may overflow, and be shrunk
  const int degree = Activation::parse(attention.activation()).degree;
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
  gains = attention.apply_gains(std::move(gains));
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
  const BatchStatistics statistics(module);
  std::vector<LayerStart> starts;
  const auto layers = attention_layers(module);
  for (AttentionBase* layer : layers) {
    if (Activation::parse(layer->activation()).kind ==
        ActivationKind::kSoftmax) {
      continue;
    }
    const NormsOf norms_of = [layer](const auto& q, const auto& k,
                                     const auto& call) {
      return layer->compute_with_norms({q, k, k.narrow(-1, 0, 1)}, call)
          .norms.weight;
    };
    layer->before_weights_ = [=, &starts](const auto& q, const auto& k,
                                          const auto& call) {
      starts.push_back(match_layer(*layer, MeasuredLayer(norms_of, q, k, call),
                                   factor, starts.size()));
      std::vector<double> gains;
      for (const HeadStart& head : starts.back()) gains.push_back(head.gain);
      return q * gain_column(gains, q);
    };
  }
  const auto done = [&] {
    for (AttentionBase* layer : layers) layer->before_weights_ = nullptr;
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
