// How far the linear path is from the reference, beside the dense one, and how
// large its inputs may be.
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "bench/inputs.h"
#include "bench/linear.h"
#include "polyattn/reference.h"

namespace polyattn::bench {
namespace {

struct Polynomial {
  const char* formula;
  std::int64_t width;
};

constexpr Polynomial kPolynomials[] = {{"x/sqrt(N)", 64},
                                       {"x^2/sqrt(N)", 64},
                                       {"x^3/sqrt(N)", 16},
                                       {"x^4/sqrt(N)", 16}};

using Json = nlohmann::ordered_json;

// Against the reference in double, relative to the root of the mean square of
// what that gives.
struct RelativeError {
  double rms = 0;
  double max = 0;
};

RelativeError error_of(const ConstTensor& got,
                       const std::vector<double>& want) {
  double square = 0, worst = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double difference =
        load_element(got.data, got.dtype, static_cast<std::int64_t>(i)) -
        want[i];
    square += difference * difference;
    worst = std::max(worst, std::abs(difference));
    size += want[i] * want[i];
  }
  const double rms = std::sqrt(size / static_cast<double>(want.size()));
  return {std::sqrt(square / size), worst / rms};
}

// Some queries are enough: what may lose digits is the sum over the keys.
Json accuracy_of(const LinearSettings& settings, const Polynomial& polynomial,
                 std::int64_t keys) {
  constexpr std::int64_t kQueries = 64;
  BenchCase c{.activation = Activation::parse(polynomial.formula),
              .n = kQueries,
              .m = keys,
              .d = polynomial.width,
              .e = polynomial.width,
              .threads = settings.threads,
              .path = Path::kLinear};
  CaseRunner linear(c, settings.run.seed);
  linear.run();
  c.path = Path::kDense;
  CaseRunner dense(c, settings.run.seed);
  dense.run();
  std::vector<double> want(static_cast<std::size_t>(c.n * c.e));
  reference_forward(linear.inputs(), linear.config(),
                    {view(want.data(), {1, 1, c.n, c.e}), {}, {}});
  const RelativeError ours = error_of(linear.o(), want);
  const RelativeError other = error_of(dense.o(), want);
  return {{"activation", c.activation.to_string()},
          {"N", keys},
          {"D", c.d},
          {"linear_rms", ours.rms},
          {"linear_max", ours.max},
          {"dense_rms", other.rms},
          {"dense_max", other.max}};
}

enum class Scaled { kBoth, kOpposed };

// One small call whose q and k are normal numbers times powers of two.
class Stretched {
 public:
  Stretched(const Polynomial& polynomial, std::uint64_t seed)
      : polynomial_(polynomial) {
    q_.fill_normal(seed);
    k_.fill_normal(seed + 1);
    v_.fill_normal(seed + 2);
  }

  // The factor up to which all goes well; null: no limit was found.
  Json limit(Path path, Scaled scaled) {
    constexpr double kMost = 120, kStep = 1.0 / 16;
    if (works(path, scaled, kMost)) return {};
    double low = 0, high = kMost;
    while (high - low > kStep) {
      const double middle = (low + high) / 2;
      (works(path, scaled, middle) ? low : high) = middle;
    }
    return std::exp2(low);
  }

 private:
  static constexpr std::int64_t kTokens = 64;

  Array array() const {
    return {DType::kF32, {1, 1, kTokens, polynomial_.width}};
  }

  static void multiply(const Array& from, double factor, const Array& to) {
    const std::int64_t count = element_count(from.tensor().size);
    for (std::int64_t i = 0; i < count; ++i) {
      store_element(to.data(), DType::kF32, i,
                    load_element(from.data(), DType::kF32, i) * factor);
    }
  }

  bool works(Path path, Scaled scaled, double exponent) {
    const double a = std::exp2(exponent);
    multiply(q_, scaled == Scaled::kBoth ? a : 1 / a, large_q_);
    multiply(k_, a, large_k_);
    try {
      attention_forward(
          {.q = large_q_.tensor(), .k = large_k_.tensor(), .v = v_.tensor()},
          {.activation = Activation::parse(polynomial_.formula), .path = path},
          {.o = o_.tensor()});
    } catch (const std::overflow_error&) {
      return false;
    }
    for (std::int64_t i = 0; i < kTokens * polynomial_.width; ++i) {
      if (!std::isfinite(load_element(o_.data(), DType::kF32, i))) return false;
    }
    return true;
  }

  Polynomial polynomial_;
  Array q_ = array(), k_ = array(), v_ = array(), o_ = array();
  Array large_q_ = array(), large_k_ = array();
};

void add_overflow(const LinearSettings& settings, const Polynomial& polynomial,
                  Report& report) {
  Stretched call(polynomial, settings.run.seed);
  const std::string name = Activation::parse(polynomial.formula).to_string();
  const auto add = [&](const char* what, Scaled scaled) {
    report.overflow.push_back({{"activation", name},
                               {"D", polynomial.width},
                               {"scaled", what},
                               {"linear", call.limit(Path::kLinear, scaled)},
                               {"dense", call.limit(Path::kDense, scaled)}});
  };
  add("q and k", Scaled::kBoth);
  add("k, and q by 1/a", Scaled::kOpposed);
}

}  // namespace

std::vector<Task> linear_accuracy_tasks(const LinearSettings& settings) {
  std::vector<Task> tasks;
  for (const Polynomial& polynomial : kPolynomials) {
    tasks.push_back({fmt::format("accuracy {}", polynomial.formula), 4,
                     [=](Report& report) {
                       for (const std::int64_t n : {1024, 4096, 16384, 65536}) {
                         if (n > settings.longest && n > 1024) continue;
                         report.accuracy.push_back(accuracy_of(
                             settings, polynomial, settings.capped(n)));
                       }
                       add_overflow(settings, polynomial, report);
                     }});
  }
  return tasks;
}

}  // namespace polyattn::bench
