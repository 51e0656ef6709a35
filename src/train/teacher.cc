#include "train/teacher.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "polyattn/models/weights.h"
#include "train/loaded_run.h"

namespace polyattn::train {
namespace {

template <typename... Values>
[[noreturn]] void refuse_teacher(const std::string& folder,
                                 fmt::format_string<const Values&...> format,
                                 const Values&... values) {
  throw run::RecordError(fmt::format("[train] train.teacher {} {}", folder,
                                     fmt::format(format, values...)));
}

std::string images_text(const run::ImageShape& images) {
  return fmt::format("{} x {} x {} pixels in {} classes", images.channels,
                     images.size, images.size, images.classes);
}

run::RunInfo info_of_teacher(const std::string& folder) {
  try {
    return run::read_run_info(folder);
  } catch (const run::RecordError& error) {
    refuse_teacher(folder, "is not the folder of a run: {}",
                   std::string(error.what()));
  }
}

// Checked: what check_teacher() says.
run::RunInfo checked_teacher(const run::Config& student,
                             const TaskShape& shape) {
  const std::string& folder = student.train.teacher;
  const run::RunInfo info = info_of_teacher(folder);
  if (info.task != student.task.name) {
    refuse_teacher(folder, "is of the task {}, not {}", info.task,
                   student.task.name);
  }
  if (info.state != run::RunState::kFinished) {
    refuse_teacher(folder,
                   "has not finished: it is {}, at step {} of {}; its weights "
                   "may still change",
                   run::name_of(info.state), info.step, info.steps);
  }
  const run::ImageShape images = image_shape_of(shape);
  if (info.images && *info.images != images) {
    refuse_teacher(folder, "is of images of {}, not {}",
                   images_text(*info.images), images_text(images));
  }
  if (!info.pixels) {
    refuse_teacher(folder,
                   "does not say by which its images were normalised: it is "
                   "of an older version, train it again");
  }
  return info;
}

// What the weights hold, whatever file they are in.
std::string hash_of(const torch::nn::Module& module) {
  std::vector<std::uint8_t> hashes;
  for (const auto& [name, tensor] : models::state_of(module)) {
    const torch::Tensor dense = tensor.contiguous();
    std::uint64_t hash = base::hash_bytes(
        {static_cast<const std::uint8_t*>(dense.data_ptr()), dense.nbytes()});
    for (int i = 0; i < 8; ++i, hash >>= 8) {
      hashes.push_back(static_cast<std::uint8_t>(hash));
    }
  }
  return fmt::format("{:016x}", base::hash_bytes(hashes));
}

torch::Tensor by_channel(const std::vector<double>& values) {
  return torch::tensor(values, torch::kDouble).view({-1, 1, 1});
}

}  // namespace

void check_teacher(const run::Config& student, const TaskShape& shape) {
  if (!student.train.teacher.empty()) checked_teacher(student, shape);
}

Teacher::Teacher(const run::Config& student, const TaskShape& shape,
                 const run::PixelStatistics& pixels) {
  const std::string& folder = student.train.teacher;
  const run::RunInfo info = checked_teacher(student, shape);
  const run::Config config = run::read_run_config(folder);
  network_ = make_network(config, shape);
  torch::nn::Module& module = network_->module();
  try {
    load_weights(folder, module, /*best=*/false);
  } catch (const run::RecordError& error) {
    refuse_teacher(folder, "cannot be used for images of {}: {}",
                   images_text(image_shape_of(shape)),
                   std::string(error.what()));
  }
  module.eval();
  for (torch::Tensor& parameter : module.parameters()) {
    parameter.set_requires_grad(false);
  }
  info_ = {.run = folder,
           .model = config.model.name,
           .activation = config.model.activation,
           .accuracy = info.result ? info.result->accuracy : std::nullopt,
           .weights = hash_of(module)};
  if (pixels == *info.pixels) return;
  const torch::Tensor own = by_channel(info.pixels->std);
  scale_ = (by_channel(pixels.std) / own).to(torch::kFloat);
  shift_ = ((by_channel(pixels.mean) - by_channel(info.pixels->mean)) / own)
               .to(torch::kFloat);
}

torch::Tensor Teacher::logits(const Batch& batch) const {
  const torch::NoGradGuard no_grad;
  Batch seen = batch;
  if (scale_.defined()) seen.inputs = batch.inputs * scale_ + shift_;
  return network_->logits(seen);
}

std::unique_ptr<const Teacher> make_teacher(
    const run::Config& student, const TaskShape& shape,
    const std::optional<run::PixelStatistics>& pixels) {
  if (student.train.teacher.empty()) return nullptr;
  return std::make_unique<const Teacher>(student, shape, pixels.value());
}

torch::Tensor distillation_loss(const models::DistilledLogits& student,
                                const torch::Tensor& teacher,
                                const Batch& batch,
                                const run::TrainConfig& train) {
  const torch::Tensor by_labels =
      loss_of(student.head, batch, train.label_smoothing);
  const torch::Tensor learned = student.head_dist.to(torch::kFloat);
  const torch::Tensor taught = teacher.to(torch::kFloat);
  const double t = train.distillation_temperature;
  const torch::Tensor by_teacher =
      train.distillation == "hard"
          ? torch::cross_entropy_loss(learned, taught.argmax(1))
          : torch::kl_div(torch::log_softmax(learned / t, 1),
                          torch::log_softmax(taught / t, 1), at::Reduction::Sum,
                          /*log_target=*/true) *
                (t * t / static_cast<double>(learned.numel()));
  return by_labels * (1 - train.distillation_alpha) +
         by_teacher * train.distillation_alpha;
}

}  // namespace polyattn::train
