#include "train/adamw.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <cmath>

#include "train/schedule.h"

namespace polyattn::train::adamw_test {

struct TwoLayersImpl : torch::nn::Module {
  TwoLayersImpl() {
    first = register_module("first", torch::nn::Linear(130, 70));
    second = register_module("second", torch::nn::Linear(70, 3));
    positions = register_module("positions", torch::nn::Embedding(5, 70));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return second(torch::tanh(first(x)) + positions->weight.mean(0));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::Embedding positions{nullptr};
};
TORCH_MODULE(TwoLayers);

run::TrainConfig options() {
  run::TrainConfig options;
  options.lr = 1e-2;
  options.weight_decay = 0.1;
  options.beta1 = 0.8;
  options.beta2 = 0.95;
  options.clip = 0;
  return options;
}

TwoLayers make_model() {
  torch::manual_seed(3);
  return TwoLayers();
}

void backward(TwoLayers& model, int step) {
  torch::manual_seed(100 + step);
  const torch::Tensor x = torch::randn({16, 130});
  torch::nn::functional::mse_loss(model->forward(x), torch::randn({16, 3}))
      .backward();
}

// torch's AdamW is the definition. After 30 steps of 1e-2 the weights have
// moved by up to 0.3; both round each step at 1e-7 of a weight of order 1.
TEST(AdamW, MakesTheStepsOfTorch) {
  TwoLayers ours = make_model();
  TwoLayers theirs = make_model();
  AdamW optimizer(*ours, options());
  std::vector<torch::Tensor> matrices;
  std::vector<torch::Tensor> others;
  for (const auto& item : theirs->named_parameters()) {
    (decays(item.key(), item.value()) ? matrices : others)
        .push_back(item.value());
  }
  ASSERT_EQ(matrices.size(), 2U);
  ASSERT_EQ(others.size(), 3U);
  const auto torch_options = [&](double decay) {
    return std::make_unique<torch::optim::AdamWOptions>(
        torch::optim::AdamWOptions(1e-2)
            .betas({0.8, 0.95})
            .weight_decay(decay));
  };
  torch::optim::AdamW reference(std::vector<torch::optim::OptimizerParamGroup>{
      {matrices, torch_options(0.1)}, {others, torch_options(0)}});
  for (int step = 0; step < 30; ++step) {
    backward(ours, step);
    optimizer.step(1e-2, optimizer.gradient_norm());
    reference.zero_grad();
    backward(theirs, step);
    reference.step();
  }
  const auto expected = theirs->named_parameters();
  for (const auto& item : ours->named_parameters()) {
    EXPECT_LT((item.value() - expected[item.key()]).abs().max().item<double>(),
              3e-6)
        << item.key();
  }
}

TEST(AdamW, ClipsToTheNorm) {
  run::TrainConfig clipped = options();
  clipped.clip = 1e-3;
  TwoLayers model = make_model();
  AdamW optimizer(*model, clipped);
  backward(model, 0);
  double square = 0;
  std::vector<torch::Tensor> gradients;
  for (const auto& parameter : model->parameters()) {
    const torch::Tensor grad = parameter.grad().to(torch::kDouble);
    square += grad.square().sum().item<double>();
    gradients.push_back(grad);
  }
  const double norm = optimizer.gradient_norm();
  EXPECT_NEAR(norm, std::sqrt(square), 1e-9 * norm);
  ASSERT_GT(norm, clipped.clip);
  optimizer.step(1e-2, norm);
  // After one step m is (1 - beta1) times the clipped gradient.
  const auto state = optimizer.state();
  const auto names = model->named_parameters();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const torch::Tensor m = state.at("adam.m." + names[i].key());
    const torch::Tensor expected = gradients[i] * (0.2 * clipped.clip / norm);
    EXPECT_TRUE(torch::allclose(m.to(torch::kDouble), expected, 1e-5, 1e-12));
  }
}

TEST(AdamW, NormOfAGradientThatIsNotFiniteIsNotFinite) {
  TwoLayers model = make_model();
  AdamW optimizer(*model, options());
  backward(model, 0);
  model->second->bias.mutable_grad()[1] = std::nan("");
  EXPECT_FALSE(std::isfinite(optimizer.gradient_norm()));
}

TEST(AdamW, ThreadsDoNotChangeABit) {
  std::vector<torch::Tensor> results;
  const int before = at::get_num_threads();
  for (const int threads : {1, 2}) {
    at::set_num_threads(1);
    TwoLayers model = make_model();
    run::TrainConfig clipped = options();
    clipped.clip = 0.1;
    clipped.ema = 0.9;
    AdamW optimizer(*model, clipped);
    for (int step = 0; step < 5; ++step) {
      at::set_num_threads(1);
      backward(model, step);
      at::set_num_threads(threads);
      optimizer.step(1e-2, optimizer.gradient_norm());
    }
    results.push_back(model->first->weight.detach().clone());
  }
  at::set_num_threads(before);
  EXPECT_TRUE(torch::equal(results[0], results[1]));
}

TEST(AdamW, GoesOnFromItsState) {
  run::TrainConfig averaged = options();
  averaged.ema = 0.9;
  TwoLayers model = make_model();
  AdamW optimizer(*model, averaged);
  for (int step = 0; step < 3; ++step) {
    backward(model, step);
    optimizer.step(1e-2, optimizer.gradient_norm());
  }
  TwoLayers copy = make_model();
  {
    const torch::NoGradGuard no_grad;
    for (const auto& item : model->named_parameters()) {
      copy->named_parameters()[item.key()].copy_(item.value());
    }
  }
  models::NamedTensors state;
  for (const auto& [name, tensor] : optimizer.state()) {
    state[name] = tensor.clone();
  }
  AdamW resumed(*copy, averaged);
  resumed.load_state(state, 3);
  backward(model, 3);
  optimizer.step(1e-2, optimizer.gradient_norm());
  backward(copy, 3);
  resumed.step(1e-2, resumed.gradient_norm());
  EXPECT_TRUE(torch::equal(model->first->weight, copy->first->weight));
  optimizer.swap_average();
  resumed.swap_average();
  EXPECT_TRUE(torch::equal(model->first->weight, copy->first->weight));

  state.erase("adam.v.first.bias");
  EXPECT_THROW(resumed.load_state(state, 3), models::WeightsError);
}

// As every optimizer is called: the loss and the gradient come from a closure.
TEST(AdamW, AStepWithAClosureIsTheSame) {
  run::TrainConfig clipped = options();
  clipped.clip = 0.1;
  TwoLayers one = make_model();
  TwoLayers other = make_model();
  AdamW direct(*one, clipped);
  AdamW called(*other, clipped);
  for (int step = 0; step < 4; ++step) {
    backward(one, step);
    const double norm = direct.gradient_norm();
    direct.step(1e-2, norm);
    int calls = 0;
    const OptimizerStep made = called.step(1e-2, [&] {
      ++calls;
      backward(other, step);
      return 0.25;
    });
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(made.loss, 0.25);
    EXPECT_EQ(made.gradient_norm, norm);
    EXPECT_EQ(made.lr, 1e-2);
    EXPECT_FALSE(made.diverged);
    EXPECT_TRUE(torch::equal(one->first->weight, other->first->weight));
  }
}

TEST(AdamW, ALossThatIsNotFiniteMovesNothing) {
  TwoLayers model = make_model();
  AdamW optimizer(*model, options());
  const torch::Tensor before = model->first->weight.detach().clone();
  const OptimizerStep made = optimizer.step(1e-2, [&] {
    backward(model, 0);
    return std::nan("");
  });
  EXPECT_TRUE(made.diverged);
  EXPECT_FALSE(made.what);
  EXPECT_TRUE(torch::equal(before, model->first->weight));
}

TEST(AdamW, AStateIsTakenUpWhenAsked) {
  TwoLayers model = make_model();
  AdamW optimizer(*model, options());
  models::NamedTensors state = optimizer.state();
  for (auto& [name, tensor] : state) tensor = torch::ones_like(tensor);
  const auto take = optimizer.taking(state, 7);
  EXPECT_EQ(optimizer.steps(), 0);
  EXPECT_EQ(optimizer.state().at("adam.m.first.bias").sum().item<float>(), 0);
  take();
  EXPECT_EQ(optimizer.steps(), 7);
  EXPECT_EQ(optimizer.state().at("adam.m.first.bias").sum().item<float>(), 70);
}

TEST(AdamW, SwappingTheAverageTwiceIsNothing) {
  run::TrainConfig averaged = options();
  averaged.ema = 0.99;
  TwoLayers model = make_model();
  AdamW optimizer(*model, averaged);
  for (int step = 0; step < 3; ++step) {
    backward(model, step);
    optimizer.step(1e-2, optimizer.gradient_norm());
  }
  const torch::Tensor weight = model->first->weight.detach().clone();
  optimizer.swap_average();
  EXPECT_FALSE(torch::equal(weight, model->first->weight));
  optimizer.swap_average();
  EXPECT_TRUE(torch::equal(weight, model->first->weight));
}

// The running values of a BatchNorm belong to the weights that they are tested
// with.
TEST(AdamW, AveragesBuffersToo) {
  run::TrainConfig averaged = options();
  averaged.ema = 0.9;
  torch::nn::BatchNorm1d norm(7);
  AdamW optimizer(*norm, averaged);
  torch::manual_seed(4);
  torch::Tensor expected = torch::zeros({7}, torch::kDouble);
  for (int step = 1; step <= 20; ++step) {
    norm->forward(2 + torch::randn({16, 7})).square().sum().backward();
    optimizer.step(1e-2, optimizer.gradient_norm());
    const double keep = std::min(0.9, (1.0 + step) / (10.0 + step));
    expected =
        keep * expected + (1 - keep) * norm->running_mean.to(torch::kDouble);
  }
  const torch::Tensor last = norm->running_mean.clone();
  models::NamedTensors state;
  for (const auto& [name, tensor] : optimizer.state()) {
    state[name] = tensor.clone();
  }
  optimizer.swap_average();
  // Twenty roundings of values of order 1.
  EXPECT_LE((norm->running_mean - expected).abs().max().item<double>(), 3e-6);
  EXPECT_GT((last - expected).abs().max().item<double>(), 1e-2);
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 20);
  optimizer.swap_average();
  EXPECT_TRUE(torch::equal(norm->running_mean, last));

  EXPECT_FALSE(state.contains("ema.num_batches_tracked"));
  torch::nn::BatchNorm1d copy(7);
  AdamW resumed(*copy, averaged);
  resumed.load_state(state, 20);
  optimizer.swap_average();
  resumed.swap_average();
  EXPECT_TRUE(torch::equal(norm->running_var, copy->running_var));
  state.erase("ema.running_var");
  EXPECT_THROW(resumed.load_state(state, 20), models::WeightsError);
}

TEST(Schedule, WarmsUpThenFallsAlongACosine) {
  run::TrainConfig schedule;
  schedule.lr = 2;
  schedule.final_lr = 0.1;
  schedule.warmup = 0.1;
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0, 100), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 4, 100), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10, 100), 2.0);
  EXPECT_NEAR(learning_rate(schedule, 55, 100), 2 * (0.1 + 0.9 / 2), 1e-12);
  EXPECT_NEAR(learning_rate(schedule, 100, 100), 0.2, 1e-12);
  schedule.warmup = 0;
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0, 1), 2.0);
}

}  // namespace polyattn::train::adamw_test
