// Roots of several functions that are measured together.
#pragma once

#include <functional>
#include <vector>

namespace polyattn::nn {

// f takes a place for each function and returns their values there. `at_zero`
// are those at 0. For each function that is above zero there: the place below 0
// where it is zero, to 1e-4 in its value, or 0 if none is found down to -16.
// Others: 0. `slope`: about what the functions rise by per unit, at least 1.
std::vector<double> roots_below_zero(
    const std::vector<double>& at_zero,
    const std::function<std::vector<double>(const std::vector<double>&)>& f,
    double slope);

}  // namespace polyattn::nn
