#include "train/physics_task.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "polyattn/models/pinn.h"
#include "polyattn/models/pinnsformer.h"
#include "train/evaluation_mode.h"
#include "train/physics_field.h"

namespace polyattn::train {
namespace {

// Points of a test batch.
constexpr std::int64_t kTestBatch = 2048;

Batch grid_batch(const physics::Problem& problem, std::int64_t points) {
  Batch batch;
  batch.inputs = grid_points(problem, points);
  batch.targets = value_at(problem.exact, problem.names, batch.inputs);
  batch.items = batch.inputs.size(0);
  return batch;
}

class PhysicsNetwork : public Network {
 public:
  explicit PhysicsNetwork(std::shared_ptr<const physics::Problem> problem)
      : problem_(std::move(problem)) {}

  torch::Tensor logits(const Batch& batch) override {
    return unknown(rows_of(batch)).select(1, 0).select(1, 0);
  }

  std::map<std::string, torch::Tensor> loss_terms(const Batch& batch) override {
    const torch::AutoGradMode with_gradients(true);
    const torch::Tensor rows = rows_of(batch).requires_grad_();
    PhysicsField field(*problem_, rows, unknown(rows));
    return physics_terms(*problem_, field);
  }

 protected:
  // [P, N, 2], a sequence for each point [P, 2], in f64: steps of 1e-4 are lost
  // on coordinates that were rounded before.
  virtual torch::Tensor sequences(const torch::Tensor& points) const = 0;
  // [P, N, 2] -> [P, N, 1].
  virtual torch::Tensor unknown(const torch::Tensor& rows) = 0;

 private:
  torch::Tensor rows_of(const Batch& batch) const {
    return sequences(batch.inputs).to(torch::kFloat);
  }

  std::shared_ptr<const physics::Problem> problem_;
};

class PinnsformerNetwork : public PhysicsNetwork {
 public:
  PinnsformerNetwork(const models::PinnsformerOptions& options,
                     std::shared_ptr<const physics::Problem> problem)
      : PhysicsNetwork(std::move(problem)), model_(options) {}
  torch::nn::Module& module() override { return *model_; }
  std::int64_t tokens() const override { return model_->options.steps(); }

 private:
  torch::Tensor sequences(const torch::Tensor& points) const override {
    return model_->sequences(points);
  }
  torch::Tensor unknown(const torch::Tensor& rows) override {
    return model_->forward(rows);
  }

  mutable models::Pinnsformer model_;
};

class PinnNetwork : public PhysicsNetwork {
 public:
  PinnNetwork(const models::PinnOptions& options,
              std::shared_ptr<const physics::Problem> problem)
      : PhysicsNetwork(std::move(problem)), model_(options) {}
  torch::nn::Module& module() override { return *model_; }
  std::int64_t tokens() const override { return 0; }

 private:
  torch::Tensor sequences(const torch::Tensor& points) const override {
    return points.unsqueeze(1);
  }
  torch::Tensor unknown(const torch::Tensor& rows) override {
    return model_->forward(rows);
  }

  models::Pinn model_;
};

// What the network says at all test points: [P] f64.
torch::Tensor predict(Network& network, const Examples& examples,
                      const std::function<void(double)>& progress) {
  const torch::NoGradGuard no_grad;
  const std::int64_t batches = examples.test_batches();
  std::vector<torch::Tensor> parts;
  for (std::int64_t i = 0; i < batches; ++i) {
    parts.push_back(network.logits(examples.test_batch(i)).to(torch::kDouble));
    if (progress) {
      progress(static_cast<double>(i + 1) / static_cast<double>(batches));
    }
  }
  return torch::cat(parts);
}

torch::Tensor exact_values(const Examples& examples) {
  std::vector<torch::Tensor> parts;
  for (std::int64_t i = 0; i < examples.test_batches(); ++i)
    parts.push_back(examples.test_batch(i).targets);
  return torch::cat(parts);
}

// Of points whose second coordinate runs faster: that of the first faster.
std::vector<double> by_rows(const torch::Tensor& values, std::int64_t side) {
  const torch::Tensor dense = values.view({side, side}).t().contiguous();
  return {dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel()};
}

run::SolutionAxis axis_of(const physics::Problem& problem, std::size_t i) {
  const torch::Tensor line =
      torch::linspace(problem.domain[i].low, problem.domain[i].high,
                      problem.test_points, torch::kDouble);
  return {.name = problem.names.coordinates[i],
          .values = {line.data_ptr<double>(),
                     line.data_ptr<double>() + line.numel()}};
}

}  // namespace

PhysicsExamples::PhysicsExamples(const physics::Problem& problem)
    : grid_(grid_batch(problem, problem.points)),
      test_(grid_batch(problem, problem.test_points)) {}

std::int64_t PhysicsExamples::test_batches() const {
  return (test_count() + kTestBatch - 1) / kTestBatch;
}

Batch PhysicsExamples::test_batch(std::int64_t index) const {
  const std::int64_t begin = index * kTestBatch;
  const std::int64_t count = std::min(kTestBatch, test_count() - begin);
  Batch batch;
  batch.inputs = test_.inputs.narrow(0, begin, count);
  batch.targets = test_.targets.narrow(0, begin, count);
  batch.items = count;
  return batch;
}

std::unique_ptr<Network> make_physics_network(
    const run::ModelConfig& model,
    std::shared_ptr<const physics::Problem> problem) {
  if (model.name == "pinn") {
    return std::make_unique<PinnNetwork>(
        models::PinnOptions()
            .hidden(model.mlp)
            .depth(model.depth)
            .initialisation(model.initialisation),
        std::move(problem));
  }
  return std::make_unique<PinnsformerNetwork>(
      models::PinnsformerOptions()
          .dim(model.dim)
          .depth(model.depth)
          .heads(model.heads)
          .feed_forward(model.mlp)
          .hidden(2 * model.mlp)
          .activation(model.activation)
          .initialisation(model.initialisation)
          .qk_gain(model.qk_gain),
      std::move(problem));
}

torch::Tensor sum_of(const std::map<std::string, torch::Tensor>& terms) {
  torch::Tensor sum;
  for (const auto& [name, term] : terms)
    sum = sum.defined() ? sum + term : term;
  return sum;
}

run::Evaluation evaluate_physics(Network& network, const Examples& examples,
                                 const std::function<void(double)>& progress) {
  const EvaluationMode mode(network.module());
  run::Evaluation result;
  for (const auto& [name, term] : network.loss_terms(*examples.whole())) {
    result.terms[name] = term.item<double>();
    result.loss += result.terms[name];
  }
  const torch::Tensor exact = exact_values(examples);
  const torch::Tensor error = predict(network, examples, progress) - exact;
  result.relative_l1 = (error.abs().sum() / exact.abs().sum()).item<double>();
  result.relative_l2 = (error.norm() / exact.norm()).item<double>();
  return result;
}

run::Solution solution_of(Network& network, const Examples& examples,
                          const physics::Problem& problem) {
  const EvaluationMode mode(network.module());
  const std::int64_t side = problem.test_points;
  return {.columns = axis_of(problem, 0),
          .rows = axis_of(problem, 1),
          .exact = by_rows(exact_values(examples), side),
          .predicted = by_rows(predict(network, examples, {}), side)};
}

void keep_problem(const std::filesystem::path& folder,
                  const physics::Problem& problem, bool goes_on) {
  const std::filesystem::path file = folder / kProblemFile;
  if (!goes_on) {
    base::write_text_file(file, problem.text);
    return;
  }
  if (physics::read_problem(file).text == problem.text) return;
  throw run::RecordError(file.string() +
                         " is another problem than that of the config: the "
                         "run began with it");
}

}  // namespace polyattn::train
