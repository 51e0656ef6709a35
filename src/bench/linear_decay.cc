// What decay costs: causal attention in linear time with a gate for each token
// against the same call without.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "bench/inputs.h"
#include "bench/linear.h"
#include "bench/timed.h"
#include "polyattn/attention.h"

namespace polyattn::bench {
namespace {

constexpr std::int64_t kLength = 16384;
constexpr const char* kFormula = "x^2/sqrt(N)";

// One head, forward and backward, with and without decay.
class Calls {
 public:
  Calls(std::int64_t length, std::int64_t width, const LinearSettings& settings)
      : parallel_(settings.threads), log_decay_(length_of(length), -1e-3F) {
    for (Array* array : {&q_, &k_, &v_, &o_, &d_o_, &dq_, &dk_, &dv_})
      *array = Array(DType::kF32, {1, 1, length, width});
    d_log_decay_ = Array(DType::kF32, {1, 1, length, 1});
    std::uint64_t seed = settings.run.seed;
    for (Array* array : {&q_, &k_, &v_, &d_o_}) array->fill_normal(seed++);
    rows_.resize(length_of(length));
  }

  void forward(bool decays) {
    attention_forward(inputs(decays), config(),
                      {.o = o_.tensor(), .rows = rows_}, parallel_);
  }

  // After forward with the same.
  void backward(bool decays) {
    AttentionGradients gradients{
        .dq = dq_.tensor(), .dk = dk_.tensor(), .dv = dv_.tensor()};
    if (decays) gradients.d_log_decay = d_log_decay_.tensor();
    attention_backward(inputs(decays), config(),
                       {.d_o = d_o_.tensor(), .o = o_.tensor(), .rows = rows_},
                       gradients, parallel_);
  }

 private:
  static std::size_t length_of(std::int64_t length) {
    return static_cast<std::size_t>(length);
  }

  AttentionInputs inputs(bool decays) const {
    AttentionInputs in{.q = q_.tensor(), .k = k_.tensor(), .v = v_.tensor()};
    if (decays)
      in.log_decay = view(log_decay_.data(), {1, 1, std::ssize(log_decay_), 1});
    return in;
  }

  static AttentionConfig config() {
    return {.activation = Activation::parse(kFormula),
            .causal = Causal::kFirst,
            .path = Path::kLinear};
  }

  DefaultParallel parallel_;
  std::vector<float> log_decay_;
  Array q_, k_, v_, o_, d_o_, dq_, dk_, dv_, d_log_decay_;
  std::vector<RowState> rows_;
};

Task decay_task(const LinearSettings& settings, std::int64_t width,
                bool backward) {
  const std::int64_t length = settings.capped(kLength);
  const std::string name = fmt::format(
      "decay, {} {} causal N={} D={}",
      backward ? "forward and backward" : "forward", kFormula, length, width);
  return {name, backward ? 6.0 : 2.0, [=](Report& report) {
            const auto calls = std::make_shared<Calls>(length, width, settings);
            const auto call = [=](bool decays) {
              return [=] {
                calls->forward(decays);
                if (backward) calls->backward(decays);
              };
            };
            Rounds rounds = settings.run.rounds;
            rounds.clock = clock_for(settings.threads);
            Row row{.name = name,
                    .threads = settings.threads,
                    .baseline_name = "without decay",
                    .measure = Measure::kTimeRatio};
            summarise(take_turns({call(true), call(false)}, rounds), row);
            report.rows.push_back(row);
          }};
}

}  // namespace

std::vector<Task> linear_decay_tasks(const LinearSettings& settings) {
  std::vector<Task> tasks;
  for (const std::int64_t width : {64, 32}) {
    for (const bool backward : {false, true})
      tasks.push_back(decay_task(settings, width, backward));
  }
  return tasks;
}

}  // namespace polyattn::bench
