// The model that a student learns from: that of a run which has finished.
//
// It has the weights of the last step, averaged if the run averages them, not
// those of the best evaluation: these were chosen by the test set, which would
// then have a part in what the student is taught.
#pragma once

#include <torch/types.h>

#include <memory>
#include <optional>

#include "train/network.h"
#include "train/run/config.h"
#include "train/run/records.h"

namespace polyattn::train {

// Throws run::RecordError if train.teacher, if there is one, is no run that can
// teach: it has not finished, or is of another task or of other images. Reads
// its records alone.
void check_teacher(const run::Config& student, const TaskShape& shape);

class Teacher {
 public:
  // `pixels`: by which the images of the student are normalised. Throws what
  // check_teacher() throws, and run::RecordError if there are no weights.
  Teacher(const run::Config& student, const TaskShape& shape,
          const run::PixelStatistics& pixels);

  // Of images as the student has them: [B, classes], without gradients.
  torch::Tensor logits(const Batch& batch) const;

  // For run.json.
  const run::Teacher& info() const { return info_; }

 private:
  std::unique_ptr<Network> network_;
  run::Teacher info_;
  // From the student's pixels to the teacher's: [C, 1, 1]. Undefined: they are
  // the same.
  torch::Tensor scale_, shift_;
};

// Nothing without train.teacher.
std::unique_ptr<const Teacher> make_teacher(
    const run::Config& student, const TaskShape& shape,
    const std::optional<run::PixelStatistics>& pixels);

// (1 - alpha) of the loss by the labels, and alpha of that by the teacher:
//   hard  cross-entropy of head_dist with the classes that the teacher chooses
//   soft  T^2 times the divergence of softmax(head_dist / T) from that of the
//         teacher, divided by batch times classes
torch::Tensor distillation_loss(const models::DistilledLogits& student,
                                const torch::Tensor& teacher,
                                const Batch& batch,
                                const run::TrainConfig& train);

}  // namespace polyattn::train
