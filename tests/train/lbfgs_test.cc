#include "train/lbfgs.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/lbfgs.h>

#include <cmath>
#include <limits>

#include "train/optimizers.h"

namespace polyattn::train::lbfgs_test {

// One vector of parameters.
struct PointImpl : torch::nn::Module {
  explicit PointImpl(const torch::Tensor& start) {
    x = register_parameter("x", start.clone());
  }
  torch::Tensor x;
};
TORCH_MODULE(Point);

using Function = std::function<torch::Tensor(const torch::Tensor&)>;

// Convex, with a condition number of 100.
torch::Tensor ellipsoid(const torch::Tensor& x) {
  const torch::Tensor scales =
      torch::logspace(0, 2, x.numel(), 10, torch::kFloat);
  return (scales * (x - 1).square()).sum() / 2;
}

torch::Tensor rosenbrock(const torch::Tensor& x) {
  const torch::Tensor first = x.slice(0, 0, -1), next = x.slice(0, 1);
  return (100 * (next - first.square()).square() + (1 - first).square()).sum();
}

torch::Tensor logistic(const torch::Tensor& x) {
  torch::manual_seed(5);
  const torch::Tensor features = torch::randn({40, x.numel()});
  const torch::Tensor signs = torch::randn({40}).sign();
  return torch::softplus(-signs * features.mv(x)).mean() +
         0.01 * x.square().sum();
}

run::TrainConfig options() {
  run::TrainConfig options;
  options.optimizer = "lbfgs";
  options.history_size = 10;
  return options;
}

Optimizer::Closure closure_of(const Point& point, const Function& f,
                              int* calls = nullptr) {
  return [=] {
    if (calls != nullptr) ++*calls;
    const torch::Tensor loss = f(point->x);
    loss.backward();
    return loss.item<double>();
  };
}

double distance(const torch::Tensor& a, const torch::Tensor& b) {
  return (a.detach() - b.detach()).abs().max().item<double>();
}

// torch's optimizer is the definition: one inner iteration of it is a step of
// ours. Both compute in f32, torch its sums too: their paths part by the
// rounding of ten steps, which the condition of the problem makes larger.
void expect_the_steps_of_torch(const Function& f, const torch::Tensor& start,
                               int steps, double tolerance) {
  Point ours(start), theirs(start);
  Lbfgs optimizer(*ours, options());
  torch::optim::LBFGS reference(theirs->parameters(),
                                torch::optim::LBFGSOptions(1)
                                    .max_iter(1)
                                    .max_eval(100)
                                    .history_size(10)
                                    .line_search_fn("strong_wolfe"));
  for (int step = 0; step < steps; ++step) {
    const OptimizerStep made = optimizer.step(0, closure_of(ours, f));
    const torch::Tensor loss = reference.step([&] {
      reference.zero_grad();
      torch::Tensor value = f(theirs->x);
      value.backward();
      return value;
    });
    EXPECT_NEAR(made.loss, loss.item<double>(),
                tolerance * std::max(1.0, std::fabs(made.loss)));
    ASSERT_LE(distance(ours->x, theirs->x), tolerance) << "step " << step;
  }
}

TEST(Lbfgs, MakesTheStepsOfTorchOnAConvexFunction) {
  expect_the_steps_of_torch(ellipsoid, torch::zeros({7}), 10, 1e-4);
}

TEST(Lbfgs, MakesTheStepsOfTorchOnRosenbrocksFunction) {
  expect_the_steps_of_torch(rosenbrock, torch::tensor({-1.2F, 1.0F}), 10, 1e-3);
}

TEST(Lbfgs, MakesTheStepsOfTorchOnALogisticRegression) {
  expect_the_steps_of_torch(logistic, torch::zeros({12}), 10, 1e-4);
}

// In f32 the loss has a rounding of 1e-7 of its terms: at the minimum of these
// it is below.
TEST(Lbfgs, ReachesTheMinimum) {
  for (const auto& [f, start] :
       {std::pair<Function, torch::Tensor>{ellipsoid, torch::zeros({30})},
        {rosenbrock, torch::tensor({-1.2F, 1.0F})},
        {rosenbrock, torch::zeros({6})}}) {
    Point point(start);
    Lbfgs optimizer(*point, options());
    double last = std::numeric_limits<double>::infinity();
    for (int step = 0; step < 80; ++step) {
      const OptimizerStep made = optimizer.step(0, closure_of(point, f));
      ASSERT_FALSE(made.diverged);
      EXPECT_LE(made.loss, last);  // a step never goes up
      last = made.loss;
    }
    EXPECT_LE(distance(point->x, torch::ones_like(point->x)), 2e-3);
    EXPECT_LE(last, 1e-6);
  }
}

// The loss that a step ended with is the one that the next begins with.
TEST(Lbfgs, AsksForTheLossOnlyInItsLineSearch) {
  Point point(torch::zeros({7}));
  Lbfgs optimizer(*point, options());
  int calls = 0;
  optimizer.step(0, closure_of(point, ellipsoid, &calls));
  EXPECT_GE(calls, 2);
  calls = 0;
  const OptimizerStep second =
      optimizer.step(0, closure_of(point, ellipsoid, &calls));
  EXPECT_GE(calls, 1);
  EXPECT_LE(calls, 3);
  EXPECT_GT(second.lr, 0);
  EXPECT_FALSE(point->x.grad().defined());
}

TEST(Lbfgs, AtTheMinimumNothingMovesAndNothingIsComputed) {
  Point point(torch::ones({7}));
  Lbfgs optimizer(*point, options());
  int calls = 0;
  for (int step = 0; step < 3; ++step) {
    const OptimizerStep made =
        optimizer.step(0, closure_of(point, ellipsoid, &calls));
    EXPECT_FALSE(made.diverged);
    EXPECT_EQ(made.gradient_norm, 0);
    EXPECT_EQ(made.lr, 0);
  }
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(torch::equal(point->x, torch::ones({7})));
}

models::NamedTensors copied(const models::NamedTensors& tensors) {
  models::NamedTensors copies;
  for (const auto& [name, tensor] : tensors) copies[name] = tensor.clone();
  return copies;
}

// Interrupted after any step, with a history that is not full, full, and
// overwritten.
TEST(Lbfgs, GoesOnFromItsStateToTheSameBits) {
  run::TrainConfig small = options();
  small.history_size = 4;
  const torch::Tensor start = torch::tensor({-1.2F, 1.0F, 0.5F, -0.3F});
  Point whole(start);
  Lbfgs optimizer(*whole, small);
  for (int step = 0; step < 12; ++step) {
    Point copy(whole->x.detach());
    Lbfgs resumed(*copy, small);
    resumed.load_state(copied(optimizer.state()), step);
    const OptimizerStep one = optimizer.step(0, closure_of(whole, rosenbrock));
    const OptimizerStep other = resumed.step(0, closure_of(copy, rosenbrock));
    EXPECT_EQ(one.loss, other.loss);
    EXPECT_EQ(one.lr, other.lr);
    EXPECT_TRUE(torch::equal(whole->x, copy->x)) << step;
    const auto expected = optimizer.state();
    const auto found = resumed.state();
    ASSERT_EQ(expected.size(), found.size());
    for (const auto& [name, tensor] : expected) {
      EXPECT_TRUE(torch::equal(tensor, found.at(name))) << name;
    }
  }
  EXPECT_EQ(optimizer.state().at("lbfgs.s").size(0), 4);
}

std::string problems_of(const models::NamedTensors& state, int steps) {
  Point point(torch::zeros({7}));
  Lbfgs optimizer(*point, options());
  try {
    optimizer.load_state(state, steps);
  } catch (const models::WeightsError& error) {
    EXPECT_TRUE(optimizer.state().empty());
    return error.what();
  }
  return "";
}

TEST(Lbfgs, RefusesAStateThatDoesNotFit) {
  Point point(torch::zeros({7}));
  Lbfgs optimizer(*point, options());
  for (int step = 0; step < 4; ++step) {
    optimizer.step(0, closure_of(point, ellipsoid));
  }
  const models::NamedTensors good = copied(optimizer.state());
  EXPECT_EQ(problems_of(good, 4), "");
  EXPECT_EQ(problems_of({}, 0), "");
  const auto with = [&](const char* name, const torch::Tensor& tensor) {
    models::NamedTensors state = good;
    state.erase(name);
    if (tensor.defined()) state[name] = tensor;
    return problems_of(state, 4);
  };
  const auto holds = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(holds(with("lbfgs.gradient", {}), "lbfgs.gradient is missing"));
  EXPECT_TRUE(
      holds(with("lbfgs.loss", torch::zeros({1})), "lbfgs.loss does not fit"));
  EXPECT_TRUE(holds(with("lbfgs.ended", {}), "lbfgs.ended is missing"));
  EXPECT_TRUE(holds(with("lbfgs.y", {}), "lbfgs.y is missing"));
  EXPECT_TRUE(
      holds(with("lbfgs.s", torch::zeros({3, 8})), "lbfgs.s does not fit"));
  EXPECT_TRUE(
      holds(with("lbfgs.s", torch::zeros({7})), "lbfgs.s does not fit"));
  EXPECT_TRUE(holds(with("lbfgs.s", torch::zeros_like(good.at("lbfgs.s"))),
                    "lbfgs.s 0 has no curvature"));
  models::NamedTensors long_state = good;
  for (const char* name : {"lbfgs.s", "lbfgs.y"}) {
    long_state[name] = good.at(name).repeat({4, 1});
  }
  EXPECT_TRUE(holds(problems_of(long_state, 4), "but history_size is 10"));
}

TEST(Lbfgs, ThreadsDoNotChangeABit) {
  const int before = at::get_num_threads();
  std::vector<torch::Tensor> results;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    Point point(torch::zeros({40000}));
    Lbfgs optimizer(*point, options());
    for (int step = 0; step < 3; ++step) {
      optimizer.step(0, [&] {
        at::set_num_threads(1);
        const double loss = closure_of(point, ellipsoid)();
        at::set_num_threads(threads);
        return loss;
      });
    }
    results.push_back(point->x.detach().clone());
  }
  at::set_num_threads(before);
  EXPECT_TRUE(torch::equal(results[0], results[1]));
}

// log(x) is not a number below 0, and steps of the usual length lead there.
torch::Tensor barrier(const torch::Tensor& x) {
  return (x - 0.01 * x.log()).sum();
}

TEST(Lbfgs, ShortensAStepToWhereTheLossIsNoNumber) {
  Point point(torch::full({3}, 2.0F));
  Lbfgs optimizer(*point, options());
  bool met = false;
  for (int step = 0; step < 40; ++step) {
    const OptimizerStep made = optimizer.step(0, [&] {
      const double loss = closure_of(point, barrier)();
      met = met || !std::isfinite(loss);
      return loss;
    });
    ASSERT_FALSE(made.diverged);
  }
  EXPECT_TRUE(met);
  EXPECT_LE(distance(point->x, torch::full({3}, 0.01F)), 1e-4);
}

TEST(Lbfgs, SaysIfNoPointOfTheLineIsFinite) {
  run::TrainConfig few = options();
  few.line_search_steps = 3;
  const torch::Tensor start = torch::full({3}, 2.0F);
  Point point(start);
  Lbfgs optimizer(*point, few);
  int calls = 0;
  const auto closure = [&] {
    const double loss = closure_of(point, ellipsoid)();
    return ++calls == 1 ? loss : std::nan("");
  };
  const OptimizerStep made = optimizer.step(0, closure);
  EXPECT_TRUE(made.diverged);
  ASSERT_TRUE(made.what);
  EXPECT_EQ(*made.what,
            "the loss is not finite at any of 3 points along the gradient, the "
            "nearest at 0.00225 of its length (train.line_search_steps)");
  EXPECT_TRUE(torch::equal(point->x, start));
}

TEST(Lbfgs, ALossThatIsNotFiniteAtTheStartIsNoStep) {
  Point point(torch::full({3}, -2.0F));
  Lbfgs optimizer(*point, options());
  const OptimizerStep made = optimizer.step(0, closure_of(point, barrier));
  EXPECT_TRUE(made.diverged);
  EXPECT_FALSE(made.what);
  EXPECT_TRUE(std::isnan(made.loss));
}

TEST(Optimizers, AdamWarmsUpLbfgs) {
  run::TrainConfig warm = options();
  warm.adam_steps = 3;
  warm.weight_decay = 0;
  Point point(torch::zeros({7})), plain(torch::zeros({7}));
  const auto optimizer = make_optimizer(*point, warm);
  run::TrainConfig adam = warm;
  adam.optimizer = "adamw";
  const auto adamw = make_optimizer(*plain, adam);
  for (int step = 0; step < 3; ++step) {
    EXPECT_TRUE(step == 0 || optimizer->state().contains("adam.m.x"));
    optimizer->step(1e-2, closure_of(point, ellipsoid));
    adamw->step(1e-2, closure_of(plain, ellipsoid));
    EXPECT_TRUE(torch::equal(point->x, plain->x));
  }
  EXPECT_TRUE(optimizer->state().empty());
  Lbfgs lbfgs(*plain, warm);
  for (int step = 0; step < 3; ++step) {
    optimizer->step(1e-2, closure_of(point, ellipsoid));
    lbfgs.step(0, closure_of(plain, ellipsoid));
    EXPECT_TRUE(torch::equal(point->x, plain->x));
  }
}

TEST(Optimizers, AWarmStartGoesOnFromItsState) {
  run::TrainConfig warm = options();
  warm.adam_steps = 3;
  Point whole(torch::zeros({7}));
  const auto optimizer = make_optimizer(*whole, warm);
  for (int step = 0; step < 8; ++step) {
    Point copy(whole->x.detach());
    const auto resumed = make_optimizer(*copy, warm);
    resumed->load_state(copied(optimizer->state()), step);
    optimizer->step(1e-2, closure_of(whole, ellipsoid));
    resumed->step(1e-2, closure_of(copy, ellipsoid));
    EXPECT_TRUE(torch::equal(whole->x, copy->x)) << step;
  }
}

}  // namespace polyattn::train::lbfgs_test
