// Of `bench train`: how a whole step of training grows with the length of its
// sequences.
#pragma once

#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/report.h"

namespace polyattn::bench {

// Lengths and their steps, 2 layers of width 64 with 2 heads of 32, as many
// tokens in each: polynomials, and softmax by way of landmarks, against
// softmax, in processor time and memory, and the exponent of the growth.
// `only`: rows whose name contains this.
std::vector<Task> step_growth_tasks(int threads, const RunOptions& run,
                                    bool quick, const std::string& only);

// The least-squares slope of log(times) over log(lengths). Throws
// std::invalid_argument for fewer than two lengths, or a time that is not
// above 0.
double growth_exponent(const std::vector<double>& lengths,
                       const std::vector<double>& times);

}  // namespace polyattn::bench
