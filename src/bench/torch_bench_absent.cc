// `bench torch`, `bench train` and `bench data` in a build without torch.
#include "base/program.h"
#include "bench/data_bench.h"
#include "bench/torch_bench.h"

namespace polyattn::bench {
namespace {

[[noreturn]] void refuse_without_torch(const std::string& name) {
  throw base::UsageError("bench " + name +
                         ": this polyattn was built without torch; configure "
                         "with -DPOLYATTN_TORCH=ON");
}

}  // namespace

std::vector<std::string> default_capabilities() { return {}; }

Report bench_torch(const std::string& name, const Options& /*options*/,
                   base::ProgressStyle /*style*/) {
  refuse_without_torch(name);
}

DataFigures bench_data(const Options& /*options*/) {
  refuse_without_torch("data");
}

}  // namespace polyattn::bench
