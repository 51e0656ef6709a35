#include "train/optimizers.h"

#include <functional>
#include <utility>

#include "train/adamw.h"
#include "train/lbfgs.h"

namespace polyattn::train {
namespace {

// Of the two only the one at work has a state.
class AdamThenLbfgs : public Optimizer {
 public:
  AdamThenLbfgs(const torch::nn::Module& module,
                const run::TrainConfig& options)
      : adam_(module, options),
        lbfgs_(module, options),
        adam_steps_(options.adam_steps) {}

  OptimizerStep step(double lr, const Closure& closure) override {
    const OptimizerStep made = now().step(lr, closure);
    if (!made.diverged) ++steps_;
    return made;
  }

  models::NamedTensors state() const override {
    return warm() ? lbfgs_.state() : adam_.state();
  }

  std::function<void()> taking(const models::NamedTensors& tensors,
                               std::int64_t steps) override {
    auto take = steps < adam_steps_
                    ? adam_.taking(tensors, steps)
                    : lbfgs_.taking(tensors, steps - adam_steps_);
    return [this, steps, take = std::move(take)] {
      take();
      steps_ = steps;
    };
  }

 private:
  bool warm() const { return steps_ >= adam_steps_; }
  Optimizer& now() {
    if (warm()) return lbfgs_;
    return adam_;
  }

  AdamW adam_;
  Lbfgs lbfgs_;
  std::int64_t adam_steps_;
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const torch::nn::Module& module,
                                          const run::TrainConfig& options) {
  if (options.optimizer == "adamw") {
    return std::make_unique<AdamW>(module, options);
  }
  if (options.adam_steps == 0) return std::make_unique<Lbfgs>(module, options);
  return std::make_unique<AdamThenLbfgs>(module, options);
}

}  // namespace polyattn::train
