// Finds the parameters and their roles (nn/schemes.h), and draws them.
#include "polyattn/nn/initialise.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <cmath>

#include "nn/schemes.h"
#include "polyattn/nn/block.h"
#include "polyattn/nn/cross_attention.h"
#include "polyattn/nn/embedding.h"
#include "polyattn/nn/wavelet.h"
#include "polyattn/nn/window_attention.h"
#include "polyattn/nn/xca_block.h"

namespace polyattn::nn {
namespace {

const Scheme& find_scheme(const std::string& name) {
  std::string list;
  for (const Scheme& scheme : schemes()) {
    if (scheme.name == name) return scheme;
    list += (list.empty() ? "" : ", ") + scheme.name;
  }
  TORCH_CHECK(false, "[initialise] name \"", name, "\" is none of ", list);
}

at::Generator make_generator(const InitialiseOptions& options) {
  return options.seed() ? at::make_generator<at::CPUGeneratorImpl>(
                              static_cast<std::uint64_t>(*options.seed()))
                        : at::globalContext().defaultGenerator(at::kCPU);
}

// By the inverse of the distribution function, so that there is nothing to
// reject: u uniform in (-p, p), where p is the part of a normal distribution
// within two standard deviations; then sqrt(2) erfinv(u) is what is wanted.
torch::Tensor truncated_normal(torch::Tensor t, double deviation,
                               const at::Generator& generator) {
  const double p = std::erf(std::sqrt(2.0));
  t.uniform_(-p, p, generator).erfinv_().mul_(std::sqrt(2.0) * deviation);
  return t.clamp_(-2 * deviation, 2 * deviation);
}

class Initialiser {
 public:
  Initialiser(const InitialiseOptions& options, std::int64_t layers)
      : scheme_(find_scheme(options.name())),
        generator_(make_generator(options)),
        qk_gain_(options.qk_gain()),
        layers_(std::max<std::int64_t>(layers, 1)) {}

  void visit(torch::nn::Module& module) {
    if (visit_layer(module) || visit_table(module)) return;
    for (const auto& child : module.children()) visit(*child);
  }

 private:
  bool visit_layer(torch::nn::Module& module) {
    if (auto* attention = module.as<AttentionImpl>()) {
      set_attention(*attention);
    } else if (auto* channels = module.as<CrossCovarianceImpl>()) {
      set_joint(channels->in_proj_weight, channels->in_proj_bias,
                *channels->out_proj);
      channels->reset_learned();
    } else if (auto* class_attention = module.as<ClassAttentionImpl>()) {
      set_joint(class_attention->in_proj_weight, class_attention->in_proj_bias,
                *class_attention->out_proj);
    } else if (auto* cross = module.as<CrossAttentionImpl>()) {
      set_joint(cross->in_proj_weight, cross->in_proj_bias, *cross->out_proj);
    } else if (auto* nystrom = module.as<NystromAttentionImpl>()) {
      set_joint(nystrom->in_proj_weight, nystrom->in_proj_bias,
                *nystrom->out_proj);
      set_taps(nystrom->conv_weight);
    } else if (auto* window = module.as<WindowAttentionImpl>()) {
      set_window_attention(*window);
    } else if (auto* mlp = module.as<MlpImpl>()) {
      set_linear(*mlp->fc1, Role::kLinear, Role::kBias);
      set_linear(*mlp->fc2, Role::kBranchEnd, Role::kBias);
    } else if (auto* linear = module.as<torch::nn::LinearImpl>()) {
      set_linear(*linear, Role::kLinear, Role::kBias);
    } else if (auto* convolution = module.as<torch::nn::Conv2dImpl>()) {
      set_convolution(*convolution);
    } else if (auto* norm = module.as<NormImpl>()) {
      norm->reset_parameters();
    } else if (auto* layer_norm = module.as<torch::nn::LayerNormImpl>()) {
      layer_norm->reset_parameters();
    } else if (auto* batch_norm = module.as<torch::nn::BatchNorm2dImpl>()) {
      batch_norm->reset_parameters();
    } else if (auto* wavelet = module.as<WaveletImpl>()) {
      wavelet->w1.fill_(1);
      wavelet->w2.fill_(1);
    } else if (auto* layer_scale = module.as<LayerScaleImpl>()) {
      layer_scale->reset_parameters();
    } else {
      return false;
    }
    return true;
  }

  bool visit_table(torch::nn::Module& module) {
    if (auto* token = module.as<TokenEmbeddingImpl>()) {
      set(token->weight, Role::kToken, {});
    } else if (auto* embedding = module.as<torch::nn::EmbeddingImpl>()) {
      set(embedding->weight, Role::kToken, {});
    } else if (auto* position = module.as<PositionEmbeddingImpl>()) {
      set(position->weight, Role::kPosition, {});
    } else if (auto* class_token = module.as<ClassTokenImpl>()) {
      set(class_token->weight,
          class_token->alone() ? Role::kToken : Role::kClassToken, {});
    } else {
      return false;
    }
    return true;
  }

  void set_attention(AttentionImpl& a) {
    const std::int64_t q_rows = a.options.heads() * a.head_dim();
    const std::int64_t k_rows = a.kv_heads() * a.head_dim();
    set_in_projection(a.in_proj_weight, {q_rows, k_rows, k_rows});
    if (a.options.bias()) set(a.in_proj_bias, Role::kAttentionBias, {});
    set_linear(*a.out_proj, Role::kBranchEnd, Role::kOutputBias);
    if (a.gate_proj) {
      set_linear(*a.gate_proj, Role::kLinear, Role::kAttentionBias);
    }
    a.reset_learned();
  }

  // Of a convolution of each channel by itself, or of each head.
  void set_taps(const torch::Tensor& weight) {
    if (!weight.defined()) return;
    const std::int64_t taps = weight.numel() / weight.size(0);
    set(weight, Role::kConvolution, {.in = taps, .out = taps});
  }

  // An attention of which q, k and v are equally wide.
  void set_joint(const torch::Tensor& in_proj_weight,
                 const torch::Tensor& in_proj_bias,
                 torch::nn::LinearImpl& out_proj) {
    const std::int64_t rows = in_proj_weight.size(0) / 3;
    set_in_projection(in_proj_weight, {rows, rows, rows});
    set(in_proj_bias, Role::kAttentionBias, {});
    set_linear(out_proj, Role::kBranchEnd, Role::kOutputBias);
  }

  void set_window_attention(WindowAttentionImpl& a) {
    set_joint(a.in_proj_weight, a.in_proj_bias, *a.out_proj);
    // The bias of the scores begins near zero: no gain of the scores makes up
    // for it.
    if (a.bias_table.defined()) set(a.bias_table, Role::kPosition, {});
    if (a.bias_fc1) {
      set_linear(*a.bias_fc1, Role::kPosition, Role::kAttentionBias);
      set_linear(*a.bias_fc2, Role::kPosition, Role::kAttentionBias);
    }
    a.reset_learned();
  }

  // The rows of q, k and v.
  void set_in_projection(const torch::Tensor& weight,
                         const std::vector<std::int64_t>& rows) {
    const auto parts = weight.split_with_sizes(rows);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      torch::Tensor part = parts[i];
      set(part, Role::kInProjection,
          {.in = part.size(1),
           .out = part.size(0),
           .joint_out = weight.size(0)});
      if (i < 2) part.mul_(qk_gain_);
    }
  }

  void set_linear(torch::nn::LinearImpl& linear, Role weight, Role bias) {
    const Fans fans{.in = linear.weight.size(1), .out = linear.weight.size(0)};
    set(linear.weight, weight, fans);
    if (linear.bias.defined()) set(linear.bias, bias, fans);
  }

  void set_convolution(torch::nn::Conv2dImpl& convolution) {
    const torch::Tensor& w = convolution.weight;
    const std::int64_t area = w.size(2) * w.size(3);
    const Fans fans{.in = w.size(1) * area, .out = w.size(0) * area};
    set(convolution.weight, Role::kConvolution, fans);
    if (convolution.bias.defined()) set(convolution.bias, Role::kBias, fans);
  }

  void set(torch::Tensor tensor, Role role, const Fans& fans) {
    const Fill fill = scheme_.fill(role, fans, layers_);
    if (fill.distribution == Distribution::kConstant) {
      tensor.fill_(fill.value);
      return;
    }
    tensor.copy_(draw(torch::empty(tensor.sizes(), torch::kFloat), fill));
  }

  torch::Tensor draw(torch::Tensor t, const Fill& fill) {
    switch (fill.distribution) {
      case Distribution::kUniform:
        return t.uniform_(-fill.value, fill.value, generator_);
      case Distribution::kNormal:
        return t.normal_(0, fill.value, generator_);
      default:
        return truncated_normal(t, fill.value, generator_);
    }
  }

  const Scheme& scheme_;
  at::Generator generator_;
  double qk_gain_;
  std::int64_t layers_;
};

}  // namespace

void initialise(torch::nn::Module& module, const InitialiseOptions& options) {
  TORCH_CHECK(std::isfinite(options.qk_gain()), "[initialise] qk_gain ",
              options.qk_gain(), " is not finite");
  const torch::NoGradGuard no_grad;
  const auto layers =
      static_cast<std::int64_t>(attention_layers(module).size());
  Initialiser(options, layers).visit(module);
}

std::vector<std::string> initialisation_names() {
  std::vector<std::string> names;
  for (const Scheme& scheme : schemes()) names.push_back(scheme.name);
  return names;
}

}  // namespace polyattn::nn
