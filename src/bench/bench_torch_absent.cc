// `bench --torch` in a build without torch.
#include "base/program.h"
#include "bench/bench_torch.h"

namespace polyattn::bench {

std::vector<std::string> default_capabilities() { return {}; }

std::vector<DuelRow> bench_torch(const BenchOptions& /*options*/,
                                 base::ProgressStyle /*style*/) {
  throw base::UsageError(
      "bench --torch and --train: this polyattn was built without torch; "
      "configure with "
      "-DPOLYATTN_TORCH=ON");
}

}  // namespace polyattn::bench
