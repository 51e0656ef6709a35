// What examples/pytorch_steps.py writes: the times of a step in PyTorch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/quality.h"

namespace polyattn::bench {

struct PyTorchSteps {
  StepTime time;
  std::string steps;  // the id of the steps that were timed
  std::vector<double> losses;
};

// Throws std::runtime_error that names the file and what is wrong in it.
PyTorchSteps read_pytorch_steps(const std::filesystem::path& path);

// Throw std::runtime_error unless it timed these steps, and their losses are
// ours to a thousandth, as f32 and sums in other orders leave them.
void check_steps(const std::filesystem::path& path, const PyTorchSteps& theirs,
                 const std::string& steps);
void check_losses(const std::filesystem::path& path, const PyTorchSteps& theirs,
                  const std::vector<double>& ours);

}  // namespace polyattn::bench
