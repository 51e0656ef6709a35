// Everything that polyattn theory measures, in steps of known cost, so that
// whoever runs them can say how far it is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "polyattn/parallel.h"
#include "theory/claims.h"

namespace polyattn::theory {

// What the measurements are held against.
struct Theory {
  SoftmaxBounds bounds;
  Expectations expectations;
};

struct Step {
  std::string label = {};
  double effort = 0;  // about seconds of one core
  std::function<void()> run = {};
};

class Study {
 public:
  // The parallel must outlive this. Throws std::invalid_argument if options
  // are out of range or out of order.
  Study(StudyOptions options, Parallel& parallel, Theory theory = {});

  // To be run in this order, each once. They refer to this object.
  std::vector<Step> steps();

  // Of the steps that were run: all of them, or there is nothing to say.
  std::vector<Claim> claims() const;

 private:
  void add_gaussian_steps(std::vector<Step>& steps);
  void add_projected_steps(std::vector<Step>& steps);

  StudyOptions options_;
  Parallel& parallel_;
  Theory theory_;
  std::vector<Claim> softmax_, causal_;
  std::vector<GaussianLength> gaussian_;
  std::vector<ProjectedLength> projected_, variants_;
};

// Comparisons in which chance plays a part and could raise a false alarm.
std::int64_t chance_comparisons(const std::vector<Claim>& claims);

}  // namespace polyattn::theory
