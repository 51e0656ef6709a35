// Dense or linear: which path a call takes, and why.
//
// With Path::kAuto a call is dense unless it has a linear path that is expected
// to be faster. What each path costs follows from the shape and from a few
// times that are measured once on a machine, in some milliseconds, by the first
// call for which they matter. They are kept in the file plan-TARGET.txt of
// $POLYATTN_CACHE, else $XDG_CACHE_HOME/polyattn, else ~/.cache/polyattn, so
// that every later process decides the same; where that cannot be written,
// times of another machine are used instead. The environment variable
// POLYATTN_PLAN (dense, linear or auto) overrides the choice of Path::kAuto;
// calls that have no linear path stay dense.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "polyattn/attention.h"

namespace polyattn {

enum class Direction : std::uint8_t { kForward, kBackward };

// Nanoseconds of one worker, in f32.
struct PathCost {
  double row = 0;            // dense: for each element of a token
  double pair = 0;           // dense: a query and a key that meet
  double pair_width = 0;     // and for each element of q and v
  double head = 0;           // linear: a sequence of a head, however short
  double token = 0;          // linear: for each element of a token
  double feature = 0;        // linear: a feature of a token
  double feature_width = 0;  // and for each element of v
  double step = 0;           // linear and causal: a token, beside all that

  bool operator==(const PathCost&) const = default;
};

struct PathCosts {
  PathCost forward, backward;

  bool operator==(const PathCosts&) const = default;
};

// Measures them, on the target in use.
PathCosts measure_path_costs();

// Those in use for the present target: set, else read from the file, else
// measured and written, else the usual ones.
PathCosts path_costs();

// Uses these from now on, for the present target, and writes them to the file
// if `keep`; returns whether that worked.
bool set_path_costs(const PathCosts& costs, bool keep);

// The file that keeps them; empty if there is no home for it.
std::string path_costs_file();

struct PathEstimate {
  Path path = Path::kDense;   // what the call takes: kDense or kLinear
  std::string reason;         // why, for a person
  std::string obstacle;       // why there is no linear path; empty if there is
  std::int64_t features = 0;  // of the linear path
  std::int64_t state_bytes = 0;  // of a pair of a sequence and a key head
  double dense_seconds = 0;      // of one worker
  double linear_seconds = 0;     // the same; 0 if there is no linear path
};

// What attention_forward or attention_backward will do. q, k and v may have
// null data.
PathEstimate estimate_paths(const AttentionInputs& inputs,
                            const AttentionConfig& config, Direction direction);

}  // namespace polyattn
