#include "bench/rig.h"

#include <stdexcept>
#include <utility>

namespace polyattn::bench {

Rig::Rig(const run::Config& config, std::unique_ptr<train::Network> network,
         MakeBatch make)
    : config_(config),
      network_(std::move(network)),
      optimizer_(network_->module(), config_.train),
      stepper_(config_, *network_, optimizer_, config_.train.steps),
      prefetcher_(std::move(make), 0, kForever) {
  network_->module().train();
}

double Rig::step(bool watch) {
  const auto result = stepper_.make(prefetcher_, step_++, watch);
  if (result.diverged) throw std::runtime_error("[bench] " + *result.diverged);
  return result.loss;
}

}  // namespace polyattn::bench
