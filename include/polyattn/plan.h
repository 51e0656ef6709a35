// Dense or linear: which path a call takes, and why.
//
// With Path::kAuto a call is dense unless it has a linear path that is expected
// to be faster. What each path costs follows from the shape and from a few
// times, the costs. Those of each target come with the library, so the choice
// is a function of shape and target, the same in every process: a call measures
// nothing, and reads and writes no file. set_path_costs() installs others. The
// environment variable POLYATTN_PLAN (dense, linear or auto) overrides the
// choice of Path::kAuto; calls that have no linear path stay dense.
//
// To use the costs of this machine:
//
//   set_path_costs(measure_path_costs());      // or, once `bench calibrate`
//   set_path_costs(read_path_costs_file());    // has kept them
//
// and to decide in another process as in this one:
//
//   const std::string text = to_string(path_costs());
//   set_path_costs(parse_path_costs(text));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

// Those in use for the present target: installed, else those of the library.
PathCosts path_costs();

// Uses these from now on for the present target, in the whole process; nothing
// goes back to those of the library. Throws std::invalid_argument unless all
// are finite and none is below 0.
void set_path_costs(const std::optional<PathCosts>& costs);

// One line, from which the same costs are parsed to the last bit.
std::string to_string(const PathCosts& costs);
// Throws std::invalid_argument.
PathCosts parse_path_costs(std::string_view text);

// Measures them on the target in use, in some 30 ms.
PathCosts measure_path_costs();

// Where `polyattn bench calibrate` keeps them: plan-TARGET.txt in
// $POLYATTN_CACHE, else $XDG_CACHE_HOME/polyattn, else ~/.cache/polyattn; empty
// if there is no home for it.
std::string path_costs_file();
// Nothing if the file is absent, damaged, or of another processor.
std::optional<PathCosts> read_path_costs_file();
// Whether that worked.
bool write_path_costs_file(const PathCosts& costs);

struct PathEstimate {
  Path path = Path::kDense;   // what the call takes: kDense or kLinear
  std::string reason;         // why, for a person
  std::string obstacle;       // why there is no linear path; empty if there is
  std::int64_t features = 0;  // of the linear path
  std::int64_t state_bytes = 0;  // of a pair of a sequence and a key head
  double dense_seconds = 0;      // of one worker
  double linear_seconds = 0;     // the same; 0 if there is no linear path
};

// What attention_forward or attention_backward will do, unless features
// overflow or statistics are wanted: what they did they return. q, k and v may
// have null data.
PathEstimate estimate_paths(const AttentionInputs& inputs,
                            const AttentionConfig& config, Direction direction);

}  // namespace polyattn
