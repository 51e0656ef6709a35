#include "train/lengths.h"

#include <algorithm>
#include <bit>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>

#include "data/probes.h"
#include "polyattn/models/gpt.h"
#include "train/evaluation_mode.h"
#include "train/probe_examples.h"
#include "train/run/models.h"
#include "train/run/tasks.h"
#include "train/text_examples.h"

namespace polyattn::train {
namespace {

// Place p holds the targets before which more than 2^(p-1) and at most 2^p
// tokens were read.
std::size_t place_of(std::int64_t tokens_read) {
  return static_cast<std::size_t>(
      std::bit_width(static_cast<std::uint64_t>(tokens_read - 1)));
}

// Sums over targets.
struct Sums {
  double nats = 0;
  std::int64_t hits = 0;
  std::int64_t count = 0;
  std::int64_t bytes = 0;  // of a text, that the targets stand for

  void add(const Sums& other) {
    nats += other.nats;
    hits += other.hits;
    count += other.count;
    bytes += other.bytes;
  }

  run::Evaluation figures(bool text) const {
    run::Evaluation figures{.loss = nats / static_cast<double>(count)};
    if (text) {
      figures.bits_per_byte =
          figures.loss / std::numbers::ln2 *
          (static_cast<double>(count) / static_cast<double>(bytes));
    } else {
      figures.accuracy = static_cast<double>(hits) / static_cast<double>(count);
    }
    return figures;
  }
};

// What a model scores at each place of examples of one length.
class Tally {
 public:
  // `sizes`: the bytes of each token, undefined if tokens are bytes.
  Tally(std::int64_t length, torch::Tensor sizes)
      : length_(length),
        sizes_(std::move(sizes)),
        places_(place_of(length) + 1) {}

  void add(const models::TokenScores& scores, const torch::Tensor& targets) {
    const torch::Tensor nats = scores.losses.sum(0, false, torch::kDouble);
    const torch::Tensor hits = scores.hits.sum(0);
    const torch::Tensor counted = targets.ge(0);
    const torch::Tensor counts = counted.sum(0);
    const torch::Tensor bytes = sizes_.defined()
                                    ? sizes_.index({targets.clamp_min(0)})
                                          .masked_fill(counted.logical_not(), 0)
                                          .sum(0)
                                    : counts;
    for (std::int64_t i = 0; i < length_; ++i) {
      places_[place_of(i + 1)].add({nats.data_ptr<double>()[i],
                                    hits.data_ptr<std::int64_t>()[i],
                                    counts.data_ptr<std::int64_t>()[i],
                                    bytes.data_ptr<std::int64_t>()[i]});
    }
  }

  run::LengthResult result(bool text) const {
    run::LengthResult result{.length = length_};
    Sums all;
    for (std::size_t p = 0; p < places_.size(); ++p) {
      const Sums& place = places_[p];
      if (place.count == 0) continue;
      all.add(place);
      result.places.push_back({.to = std::min(length_, std::int64_t{1} << p),
                               .count = place.count,
                               .evaluation = place.figures(text)});
    }
    result.count = all.count;
    result.evaluation = all.figures(text);
    return result;
  }

 private:
  std::int64_t length_;
  torch::Tensor sizes_;
  std::vector<Sums> places_;
};

torch::Tensor piece_sizes(const TaskData& data) {
  const auto* text = std::get_if<data::TextSplits>(&data);
  if (text == nullptr || !text->tokens) return {};
  std::vector<std::int64_t> sizes;
  for (const std::string& piece : text->tokens->pieces)
    sizes.push_back(std::ssize(piece));
  return torch::tensor(sizes, torch::kLong);
}

// As many tokens as the test set has, but not only a few examples.
constexpr std::int64_t kLeastProbes = 32;

// Drawn again, of this length, and none that was trained on.
std::unique_ptr<Examples> probes_of(run::Config config, std::int64_t length) {
  const std::int64_t tokens = config.task.test_count * config.task.length;
  config.task.length = length;
  config.task.test_count = std::max(kLeastProbes, tokens / length);
  config.task.validation = 0;
  config.task.train_count = config.train.batch;
  const auto data = load_task_data(config.task);
  return std::make_unique<ProbeExamples>(
      data, std::get<data::ProbeSplits>(*data), config);
}

// As the config says, but of this length.
std::unique_ptr<Examples> examples_of(
    const std::shared_ptr<const TaskData>& data, run::Config config,
    std::int64_t length) {
  const auto* text = std::get_if<data::TextSplits>(data.get());
  if (text == nullptr) return probes_of(std::move(config), length);
  config.task.context = length;
  return std::make_unique<TextExamples>(data, *text, config);
}

[[noreturn]] void refuse(std::int64_t length, const std::string& why) {
  throw std::invalid_argument("[lengths] a length of " +
                              std::to_string(length) + why);
}

void check_text(const data::TextSplits& text, const run::Config& config,
                std::int64_t longest) {
  const std::int64_t tokens = evaluated_text(text, config.task).size();
  if (longest < tokens) return;
  refuse(longest, " is longer than the text that is held out, of " +
                      std::to_string(tokens) +
                      (text.tokens ? " tokens" : " bytes") + ", allows");
}

void check_probes(const run::Config& config,
                  const std::vector<std::int64_t>& lengths) {
  data::ProbeSource source = probe_source(config.task);
  for (const std::int64_t length : lengths) {
    source.length = length;
    try {
      data::make_probes(source, 0, 0);
    } catch (const data::DataError& error) {
      throw std::invalid_argument(error.what());
    }
  }
}

}  // namespace

void check_lengths(const run::Config& config, const TaskData& data,
                   const std::vector<std::int64_t>& lengths) {
  if (lengths.empty()) return;
  const run::ModelEntry* const model = run::find_model(config.model.name);
  if (model == nullptr || model->family != run::ModelFamily::kGpt) {
    throw std::invalid_argument(
        "[lengths] lengths are of language models, not of the model " +
        config.model.name + " on " + config.task.name);
  }
  const std::int64_t context = run::example_length(config.task);
  if (config.model.positions == "learned" && lengths.back() > context) {
    refuse(lengths.back(), " is beyond the context of " +
                               std::to_string(context) +
                               ", for which positions were learned "
                               "(model.positions)");
  }
  if (const auto* text = std::get_if<data::TextSplits>(&data)) {
    check_text(*text, config, lengths.back());
  } else {
    check_probes(config, lengths);
  }
}

run::Lengths evaluate_lengths(Network& network,
                              const std::shared_ptr<const TaskData>& data,
                              const run::Config& config,
                              const std::vector<std::int64_t>& lengths,
                              const std::function<void(double)>& progress) {
  check_lengths(config, *data, lengths);
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(network.module());
  auto& model = *network.module().as<models::GptImpl>();
  run::Lengths found;
  const bool text = shape_of(*data, config.task).text;
  found.split = text && config.task.validation > 0 ? run::kValidation : "test";
  found.context = run::example_length(config.task);
  for (const std::int64_t length : lengths) {
    const auto examples = examples_of(data, config, length);
    Tally tally(length, piece_sizes(*data));
    const std::int64_t batches = examples->test_batches();
    for (std::int64_t i = 0; i < batches; ++i) {
      const Batch batch = examples->test_batch(i);
      const torch::Tensor targets = batch.targets.view(batch.inputs.sizes());
      tally.add(model.score(batch.inputs, targets), targets);
      if (!progress) continue;
      const auto done =
          static_cast<double>(found.lengths.size()) +
          static_cast<double>(i + 1) / static_cast<double>(batches);
      progress(done / static_cast<double>(lengths.size()));
    }
    found.lengths.push_back(tally.result(text));
  }
  return found;
}

}  // namespace polyattn::train
