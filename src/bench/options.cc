#include "bench/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/program.h"
#include "polyattn/plan.h"

namespace polyattn::bench {
namespace {

// Bytes of the operands of a case, in double: the product may be absurd.
double operand_bytes(const BenchCase& c) {
  const auto heads = static_cast<double>(c.b) * static_cast<double>(c.h);
  const auto kv_heads = static_cast<double>(c.b) * static_cast<double>(c.g);
  const auto width = static_cast<double>(c.d + c.e);
  const double elements = heads * static_cast<double>(c.n) * width +
                          kv_heads * static_cast<double>(c.m) * width;
  const double copies = c.op == Op::kBackward ? 2 : 1;
  return copies * elements * static_cast<double>(size_of(c.dtype)) +
         heads * static_cast<double>(c.n) * sizeof(RowState);
}

void check_linear(BenchCase c) {
  if (c.stats) throw base::UsageError("--path linear gives no statistics");
  c.path = Path::kAuto;
  const PathEstimate e =
      estimate_paths(shape_of(c), config_of(c), Direction::kForward);
  if (e.obstacle.empty()) return;
  throw base::UsageError(fmt::format("--path linear: {}: {}",
                                     c.activation.to_string(), e.obstacle));
}

void check_case(const BenchCase& c, double memory_bytes) {
  if (c.h % c.g != 0) {
    throw base::UsageError(
        fmt::format("--heads {} is not a multiple of --kv-heads {}", c.h, c.g));
  }
  if (c.path == Path::kLinear) check_linear(c);
  if (memory_bytes > 0 && operand_bytes(c) > memory_bytes) {
    throw base::UsageError(fmt::format(
        "{} needs {:.1f} GB for its operands; the machine has {:.1f} GB",
        describe(c), operand_bytes(c) / 1e9, memory_bytes / 1e9));
  }
}

// Throws UsageError for a name that none of them has.
template <typename T>
T parse(const char* option, const std::string& name,
        const std::vector<T>& values) {
  std::vector<std::string> names;
  for (const T value : values) {
    if (name == name_of(value)) return value;
    names.emplace_back(name_of(value));
  }
  throw base::UsageError(fmt::format("{} {}: it is one of {}", option, name,
                                     fmt::join(names, ", ")));
}

// Everything of a case but its shape and threads.
std::vector<BenchCase> kinds(const Options& options) {
  std::vector<BenchCase> result;
  for (const std::string& op : options.ops) {
    for (const std::string& formula : options.activations) {
      for (const std::string& dtype : options.dtypes) {
        BenchCase c{
            .op = parse<Op>("--op", op, {Op::kForward, Op::kBackward}),
            .activation = Activation::parse(formula),
            .dtype = parse<DType>(
                "--dtype", dtype,
                {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}),
            .causal =
                parse<Causal>("--causal", options.causal,
                              {Causal::kNone, Causal::kFirst, Causal::kLast}),
            .path = parse<Path>("--path", options.path,
                                {Path::kDense, Path::kLinear, Path::kAuto})};
        c.stats = options.stats && c.op == Op::kForward;
        result.push_back(c);
      }
    }
  }
  return result;
}

std::vector<Figure> grid_figures(const Options& options,
                                 const std::vector<int>& threads,
                                 double memory_bytes) {
  std::vector<Figure> figures;
  for (BenchCase c : kinds(options)) {
    c.b = options.batch;
    c.h = options.heads;
    c.g = options.kv_heads.value_or(c.h);
    for (const std::int64_t width : options.widths) {
      c.d = width;
      c.e = options.value_width.value_or(width);
      for (const std::int64_t length : options.lengths) {
        c.n = length;
        c.m = options.keys.value_or(length);
        check_case(c, memory_bytes);
        for (const int count : threads) {
          c.threads = count;
          figures.push_back({.name = describe(c), .subject = c});
        }
      }
    }
  }
  return figures;
}

}  // namespace

std::vector<int> thread_counts(const Options& options, int hardware_threads) {
  if (options.threads.empty()) {
    return hardware_threads < 2 ? std::vector{1} : std::vector{1, 2};
  }
  std::vector<int> counts;
  for (const int count : options.threads) {
    if (std::find(counts.begin(), counts.end(), count) == counts.end()) {
      counts.push_back(count);
    }
  }
  return counts;
}

std::vector<Figure> select_figures(const Options& options, int hardware_threads,
                                   double memory_bytes) {
  const std::vector<int> threads = thread_counts(options, hardware_threads);
  if (options.grid) {
    if (!options.only.empty())
      throw base::UsageError("--only is for the table of goals");
    return grid_figures(options, threads, memory_bytes);
  }
  std::vector<Figure> figures =
      options.quick ? quick_figures(threads) : standard_figures(threads);
  std::erase_if(figures, [&](const Figure& figure) {
    return figure.name.find(options.only) == std::string::npos;
  });
  if (figures.empty())
    throw base::UsageError(
        fmt::format("--only {}: no row has this in its name", options.only));
  return figures;
}

RunOptions run_options(const Options& options) {
  RunOptions run;
  run.rounds.rounds =
      options.repeats.value_or(options.quick ? 3 : run.rounds.rounds);
  run.rounds.min_seconds = options.min_time.value_or(run.rounds.min_seconds);
  run.seed = options.seed;
  return run;
}

}  // namespace polyattn::bench
