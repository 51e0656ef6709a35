#include "cli/theory_run.h"

#include <fmt/format.h>

#include "train/run_norms.h"

namespace polyattn::cli {
namespace {

using theory::RunRoots;
using theory::TheoryRunNorms;
using theory::TheoryRunOptions;

TheoryRunNorms norms_of_run(const TheoryRunOptions& options) {
  const train::RunNorms run =
      train::measure_run_norms({.folder = options.folder,
                                .best = options.best,
                                .threads = options.threads,
                                .path = options.data});
  TheoryRunNorms norms{
      .task = run.task, .examples = run.examples, .layers = {}};
  for (std::size_t i = 0; i < run.layers.size(); ++i) {
    const train::LayerNorms& layer = run.layers[i];
    for (std::size_t head = 0; head < layer.weight_mean.size(); ++head) {
      norms.layers.push_back({.name = fmt::format("layer {} head {}", i, head),
                              .activation = run.activation,
                              .tokens = run.tokens,
                              .width = run.head_dim,
                              .causal = run.causal,
                              .weight_norm = layer.weight_mean[head],
                              .jacobian_norm = layer.jacobian_mean[head],
                              .max_abs_score = layer.max_abs_score[head]});
    }
  }
  return norms;
}

RunRoots roots_of_run(const TheoryRunOptions& options,
                      const std::string& other) {
  const train::RunNorms run =
      train::measure_run_norms({.folder = options.folder,
                                .best = options.best,
                                .threads = options.threads,
                                .path = options.data,
                                .other = other});
  RunRoots roots{.activation = run.activation,
                 .tokens = run.tokens,
                 .own = {},
                 .other = {}};
  for (const train::LayerRoots& layer : run.roots) {
    roots.own.push_back(layer.own);
    roots.other.push_back(layer.other);
  }
  return roots;
}

}  // namespace

const theory::RunReader kRunReader = {.norms = norms_of_run,
                                      .roots = roots_of_run};

}  // namespace polyattn::cli
