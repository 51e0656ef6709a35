// Projections of q, k and v that a file has apart and a module as one.
#pragma once

#include <array>
#include <string>

#include "polyattn/models/weights.h"

namespace polyattn::models {

// One tensor, row after row, in the place of three; none if one of the three is
// missing or of another shape or type, which loading then says.
void join_projections(NamedTensors& tensors,
                      const std::array<std::string, 3>& parts,
                      const std::string& joint);

}  // namespace polyattn::models
