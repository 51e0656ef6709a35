// What the benchmarks that need torch do in a build without torch.
#include "base/program.h"
#include "bench/data_bench.h"
#include "bench/nystrom_bench.h"
#include "bench/time_to_quality.h"
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

QualityOutcome time_to_quality(const Options& /*options*/) {
  refuse_without_torch("time-to-quality");
}

NystromStudy bench_nystrom(const Options& /*options*/) {
  refuse_without_torch("nystrom");
}

}  // namespace polyattn::bench
