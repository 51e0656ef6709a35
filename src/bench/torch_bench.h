// `polyattn bench torch` and `bench train`: the rows of torch_comparisons.h and
// train_comparisons.h, with libtorch run in each of its modes.
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "bench/options.h"
#include "bench/report.h"

namespace polyattn::bench {

// name: torch or train. Options have values of ATEN_CPU_CAPABILITY to measure:
// "default" stands for what this process has, the others are run in a process
// of their own, and the better one counts for each row. Throws UsageError
// without torch.
Report bench_torch(const std::string& name, const Options& options,
                   base::ProgressStyle style);

// What is measured where nothing is said: the default, and avx512 where this
// machine has it, because libtorch does not use it unless told to. Empty
// without torch.
std::vector<std::string> default_capabilities();

}  // namespace polyattn::bench
