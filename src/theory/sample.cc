#include "theory/sample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "polyattn/attention.h"

namespace polyattn::theory {
namespace {

// Small matrices are drawn and measured in groups of so many rows, a group a
// task. From kLongTokens on the kernel divides one matrix among the workers.
// Either way gives the same bits: the kernels see the same shapes.
constexpr std::int64_t kGroupRows = 4096;
constexpr std::int64_t kLongTokens = 4096;

// Matrices number first .. first + count - 1.
struct Group {
  std::int64_t first = 0, count = 0;
};

struct GroupInputs {
  std::vector<float> q, k;  // [B, 1, N, D]
};

GroupInputs draw_group(const SampleRequest& r, const Group& group) {
  const std::int64_t size = r.tokens * r.width;
  GroupInputs inputs;
  for (std::int64_t b = 0; b < group.count; ++b) {
    Random random({r.seed, r.stream, r.tokens, group.first + b});
    for (std::vector<float>* to : {&inputs.q, &inputs.k}) {
      const std::vector<float> drawn = normal_floats(size, random);
      to->insert(to->end(), drawn.begin(), drawn.end());
    }
  }
  return inputs;
}

// The values have width 1: only the statistics are wanted.
std::vector<AttentionStats> stats_of(const SampleRequest& r,
                                     const MatrixCase& c,
                                     const GroupInputs& inputs,
                                     Parallel& parallel) {
  const auto size = static_cast<std::int64_t>(inputs.q.size());
  const std::int64_t count = size / (r.tokens * r.width);
  const Extents rows{count, 1, r.tokens, r.width};
  const Extents ends{count, 1, r.tokens, 1};
  const auto values = static_cast<std::size_t>(count * r.tokens);
  const std::vector<float> v(values, 1);
  std::vector<float> o(values);
  std::vector<AttentionStats> stats(static_cast<std::size_t>(count));
  const AttentionInputs operands{.q = view(inputs.q.data(), rows),
                                 .k = view(inputs.k.data(), rows),
                                 .v = view(v.data(), ends)};
  const AttentionConfig config{
      .activation = c.activation,
      .scale = c.temperature / std::sqrt(static_cast<double>(r.width)),
      .causal = c.causal ? Causal::kFirst : Causal::kNone};
  std::vector<std::byte> workspace(
      attention_forward_workspace(operands, config, parallel.workers()));
  attention_forward(operands, config,
                    {.o = view(o.data(), ends), .stats = stats}, workspace,
                    parallel);
  return stats;
}

void measure_group(const SampleRequest& r, const Group& group,
                   Parallel& parallel, std::vector<SampledNorms>& norms) {
  const GroupInputs inputs = draw_group(r, group);
  for (std::size_t c = 0; c < r.cases.size(); ++c) {
    const auto stats = stats_of(r, r.cases[c], inputs, parallel);
    for (std::size_t b = 0; b < stats.size(); ++b) {
      const std::size_t at = static_cast<std::size_t>(group.first) + b;
      norms[c].weight_sq[at] = stats[b].weight_sq;
      norms[c].jacobian_sq[at] = stats[b].jacobian_sq;
    }
  }
}

std::vector<Group> groups_of(const SampleRequest& r) {
  const std::int64_t most = std::max<std::int64_t>(1, kGroupRows / r.tokens);
  std::vector<Group> groups;
  for (std::int64_t at = 0; at < r.samples; at += most) {
    groups.push_back({at, std::min(most, r.samples - at)});
  }
  return groups;
}

}  // namespace

std::vector<SampledNorms> sample_norms(const SampleRequest& request,
                                       Parallel& parallel) {
  const auto samples = static_cast<std::size_t>(request.samples);
  std::vector<SampledNorms> norms(request.cases.size());
  for (SampledNorms& n : norms) {
    n.weight_sq.resize(samples);
    n.jacobian_sq.resize(samples);
  }
  const std::vector<Group> groups = groups_of(request);
  if (request.tokens >= kLongTokens) {
    for (const Group& group : groups) {
      measure_group(request, group, parallel, norms);
    }
    return norms;
  }
  parallel.run(static_cast<std::int64_t>(groups.size()),
               [&](std::int64_t task, int) {
                 SerialParallel serial;
                 measure_group(request, groups[static_cast<std::size_t>(task)],
                               serial, norms);
               });
  return norms;
}

double kernel_rounding(int degree, std::int64_t width) {
  const auto d = static_cast<double>(width);
  constexpr double kBlockKeys = 512;
  return (2 * degree * (d + 3) * std::sqrt(d) + kBlockKeys) * 0x1p-24;
}

std::vector<float> normal_floats(std::int64_t count, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

}  // namespace polyattn::theory
