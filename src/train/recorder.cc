#include "train/recorder.h"

#include <fmt/format.h>

#include <chrono>

namespace polyattn::train {
namespace {

double wall_time() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A number is a scalar; a list has one for each layer, and in it one for each
// head: norms/weight_max/layer0/head1.
void add_scalars(run::EventWriter& events, std::int64_t step,
                 const std::string& tag, const base::Json& value) {
  if (!value.is_array()) {
    if (value.is_number() || value.is_string()) {
      events.scalar(tag, step, wall_time(), base::number_of(value));
    }
    return;
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    const bool in_layer = tag.find("/layer") != std::string::npos;
    add_scalars(events, step,
                fmt::format("{}/{}{}", tag, in_layer ? "head" : "layer", i),
                value[i]);
  }
}

}  // namespace

Recorder::Recorder(const Options& options)
    : metrics_(options.folder / "metrics.jsonl", options.keep_bytes) {
  if (!options.tensorboard) return;
  events_ = std::make_unique<run::EventWriter>(options.folder / "tensorboard",
                                               options.step);
}

void Recorder::write(const base::Json& record) {
  metrics_.write(record);
  const auto kind = record.at("kind").get<std::string>();
  if (!events_ || kind == "diverged") return;
  for (const auto& [key, value] : record.items()) {
    if (key == "kind" || key == "step") continue;
    add_scalars(*events_, record.at("step").get<std::int64_t>(),
                kind + "/" + key, value);
  }
}

void Recorder::sync() {
  metrics_.sync();
  if (events_) events_->flush();
}

}  // namespace polyattn::train
