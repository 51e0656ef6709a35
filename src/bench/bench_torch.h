// `polyattn bench --torch`: the rows of cli/torch_duels.h, with libtorch run in
// each of its modes.
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "bench/bench_options.h"
#include "bench/duel.h"

namespace polyattn::bench {

// Values of ATEN_CPU_CAPABILITY to measure: "default" stands for what this
// process has, the others are run in a process of their own, and the better
// one counts for each row. Throws UsageError without torch.
std::vector<DuelRow> bench_torch(const BenchOptions& options,
                                 base::ProgressStyle style);

// What is measured where nothing is said: the default, and avx512 where this
// machine has it, because libtorch does not use it unless told to.
std::vector<std::string> default_capabilities();

}  // namespace polyattn::bench
