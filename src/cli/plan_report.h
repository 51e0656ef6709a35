// What `polyattn plan` says: which path a call takes, what both are expected to
// cost, and from which length on the linear one is the faster.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "polyattn/attention.h"
#include "polyattn/plan.h"

namespace polyattn::cli {

// Letters as in polyattn/attention.h; f32.
struct PlanShape {
  Activation activation;
  std::int64_t b = 1, h = 1, g = 1, n = 1, m = 1, d = 1, e = 1;
  Causal causal = Causal::kNone;
  Window window = {};
};

struct PlanQuestion {
  PlanShape shape;
  bool keys_follow = false;  // M is N, also where N is varied
  std::vector<Direction> directions{Direction::kForward, Direction::kBackward};
};

struct PlanAnswer {
  Direction direction = Direction::kForward;
  PathEstimate estimate;
  // The smallest N at which linear is expected to be faster; none up to
  // kLongestPlanned.
  std::optional<std::int64_t> crossover;
};

inline constexpr std::int64_t kLongestPlanned = std::int64_t{1} << 24;

// Throws UsageError for a shape that attention does not take, and for a
// POLYATTN_PLAN that says nothing.
std::vector<PlanAnswer> answer_plan(const PlanQuestion& question);

// Found by doubling, then by bisection, of what is predicted.
std::optional<std::int64_t> crossover_of(const PlanQuestion& question,
                                         Direction direction);

std::string plan_text(const PlanQuestion& question,
                      const std::vector<PlanAnswer>& answers);
nlohmann::ordered_json plan_json(const PlanQuestion& question,
                                 const std::vector<PlanAnswer>& answers);

const char* name_of(Direction direction);

}  // namespace polyattn::cli
