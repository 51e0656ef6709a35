// nn::Attention token by token.
#include "polyattn/nn/attention.h"

namespace polyattn::nn {

torch::Tensor AttentionImpl::forward(const torch::Tensor& x, KvCache& cache) {
  check_rows(x);
  TORCH_CHECK(options.causal(), "[Attention] a cache needs causal(true)");
  TORCH_CHECK(options.decay() == "none", "[Attention] decay ", options.decay(),
              " has no KvCache: use a DecodeCache");
  torch::Tensor tail = cache.tail();
  Heads heads = project(x, cache.length(), &tail);
  if (slides()) {
    const KvCache::Rows seen = cache.slide(heads.k, heads.v, options.window());
    heads.k = seen.k;
    heads.v = seen.v;
  } else {
    cache.append(heads.k, heads.v);
    heads.k = cache.keys();
    heads.v = cache.values();
  }
  cache.keep_tail(tail);
  return attend(x, heads, {}, Causal::kLast);
}

// The formula, or what was learned of it, for each head if they differ.
DecodeCall AttentionImpl::decode_call() const {
  const Activation formula = Activation::parse(options.activation());
  DecodeCall call{{formula}, score_factor(), options.center_values(), {}};
  if (!coefficients.defined()) return call;
  const torch::Tensor values = coefficients.detach()
                                   .to(torch::kDouble)
                                   .contiguous()
                                   .view({-1, coefficients.size(-1)});
  call.activations.assign(static_cast<std::size_t>(values.size(0)), formula);
  for (std::int64_t h = 0; h < values.size(0); ++h) {
    Activation& own = call.activations[static_cast<std::size_t>(h)];
    for (std::int64_t i = 0; i < values.size(1); ++i)
      own.coefficient[static_cast<std::size_t>(i)] =
          values.data_ptr<double>()[h * values.size(1) + i];
  }
  return call;
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x,
                                     DecodeCache& cache) {
  check_rows(x);
  TORCH_CHECK(options.causal(), "[Attention] a cache needs causal(true)");
  TORCH_CHECK(!is_training() ||
                  (options.dropout() == 0 && options.projection_dropout() == 0),
              "[Attention] decoding has no dropout: call eval() first");
  torch::Tensor tail = cache.tail();
  Heads heads = project(x, cache.length(), &tail);
  DecodeCall call = decode_call();
  call.log_decay = log_decay(x);
  torch::Tensor o;
  if (!slides()) o = cache.step(heads.q, heads.k, heads.v, call);
  if (options.window() > 0) {
    const KvCache::Rows seen = cache.slide(heads.k, heads.v, options.window());
    heads.k = seen.k;
    heads.v = seen.v;
    o = slides() ? weighted(heads, {}, Causal::kLast, {})
                 : with_window(heads, {}, Causal::kLast, o);
  }
  cache.keep_tail(tail);
  return project_out(x, o);
}

}  // namespace polyattn::nn
