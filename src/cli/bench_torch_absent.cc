// `bench --torch` in a build without torch.
#include "cli/bench_torch.h"
#include "cli/cli.h"

namespace polyattn::cli {

std::vector<std::string> default_capabilities() { return {}; }

std::vector<DuelRow> bench_torch(const BenchOptions& /*options*/,
                                 ProgressStyle /*style*/) {
  throw UsageError(
      "bench --torch and --train: this polyattn was built without torch; "
      "configure with "
      "-DPOLYATTN_TORCH=ON");
}

}  // namespace polyattn::cli
