// `bench torch` and `bench train` in a build without torch.
#include "base/program.h"
#include "bench/torch_bench.h"

namespace polyattn::bench {

std::vector<std::string> default_capabilities() { return {}; }

Report bench_torch(const std::string& name, const Options& /*options*/,
                   base::ProgressStyle /*style*/) {
  throw base::UsageError("bench " + name +
                         ": this polyattn was built without torch; configure "
                         "with -DPOLYATTN_TORCH=ON");
}

}  // namespace polyattn::bench
