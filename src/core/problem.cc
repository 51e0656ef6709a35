// The checks at the boundary. Each throws before anything has been written,
// with a message that names the operation, the argument and both values.
#include "core/problem.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/decay.h"

namespace polyattn {
namespace {

// Longer chunks would gain nothing and cost memory.
constexpr std::int64_t kMostChunk = 1 << 16;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

// Sum and product of non-negative numbers; kMax if they do not fit.
std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  return a > kMax - b ? kMax : a + b;
}

std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  return b != 0 && a > kMax / b ? kMax : a * b;
}

std::int64_t saturating_count(const Extents& size) {
  std::int64_t count = 1;
  for (const std::int64_t s : size) count = saturating_multiply(count, s);
  return count;
}

bool known(DType dtype) { return dtype <= DType::kF64; }

// A tensor or mask under the name that messages give it.
struct Argument {
  Argument(const char* argument_name, const ConstTensor& t)
      : name(argument_name),
        data(t.data),
        dtype(t.dtype),
        element_size(known(t.dtype) ? size_of(t.dtype) : 0),
        size(t.size),
        stride(t.stride) {}
  Argument(const char* argument_name, const ConstMask& t)
      : name(argument_name),
        data(t.data),
        element_size(1),
        size(t.size),
        stride(t.stride) {}

  const char* name;
  const void* data;
  DType dtype = DType::kF32;
  std::size_t element_size;
  Extents size;
  Extents stride;
};

class Checker {
 public:
  explicit Checker(const char* op) : op_(op) {}

  template <typename... Parts>
  void require(bool ok, const Parts&... parts) const {
    if (ok) return;
    std::ostringstream message;
    message << '[' << op_ << "] ";
    (message << ... << parts);
    throw std::invalid_argument(message.str());
  }

  void equal(const char* name, std::int64_t value, const char* other_name,
             std::int64_t other) const {
    require(value == other, name, ' ', value, " != ", other_name, ' ', other);
  }

  // What holds for every argument: it can be addressed without surprises.
  void addressable(const Argument& a) const {
    require(known(a.dtype), a.name, " has unknown element type ",
            static_cast<int>(a.dtype));
    std::int64_t last = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      require(a.size[i] >= 0, a.name, " size[", i, "] ", a.size[i], " < 0");
      require(a.stride[i] >= 0, a.name, " stride[", i, "] ", a.stride[i],
              " < 0");
      const std::int64_t steps = std::max<std::int64_t>(a.size[i] - 1, 0);
      last = saturating_add(last, saturating_multiply(steps, a.stride[i]));
    }
    const std::int64_t count = saturating_count(a.size);
    const std::int64_t limit =
        kMax / static_cast<std::int64_t>(a.element_size) - 1;
    require(count <= limit, a.name, " has more than ", limit, " elements");
    require(last <= limit, a.name, " strides reach beyond element ", limit);
    require(a.data != nullptr || count == 0, a.name, " is null but has ", count,
            " elements");
  }

  // Kernels read and write whole rows.
  void dense_rows(const Argument& a) const {
    addressable(a);
    require(a.stride[3] == 1 || a.size[3] <= 1, a.name,
            " stride of the last dimension ", a.stride[3], " != 1");
  }

  // No two elements in one place, else the result depends on who writes last.
  void writable(const Argument& a) const {
    dense_rows(a);
    if (element_count(a.size) == 0) return;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < 4; ++i) {
      if (a.size[i] > 1) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
      return a.stride[x] < a.stride[y];
    });
    std::int64_t extent = 1;
    for (const std::size_t i : order) {
      require(a.stride[i] >= extent, a.name, " overlaps itself: stride[", i,
              "] ", a.stride[i], " < extent ", extent,
              " of what it steps over");
      extent += (a.size[i] - 1) * a.stride[i];
    }
  }

  void same_size(const Argument& a, const Extents& expected,
                 const char* like) const {
    for (std::size_t i = 0; i < 4; ++i) {
      require(a.size[i] == expected[i], a.name, " size[", i, "] ", a.size[i],
              " != ", expected[i], " as in ", like);
    }
  }

  void broadcasts_to(const Argument& a, const Extents& full) const {
    const std::int64_t batch = a.size[0];
    require(batch == full[0] || (batch > 0 && full[0] % batch == 0), a.name,
            " size[0] ", batch, " is no divisor of batch ", full[0]);
    for (std::size_t i = 1; i < 4; ++i) {
      require(a.size[i] == 1 || a.size[i] == full[i], a.name, " size[", i, "] ",
              a.size[i], " is neither 1 nor ", full[i]);
    }
  }

 private:
  const char* op_;
};

void check_shapes(const Checker& check, const AttentionInputs& in) {
  const Extents &q = in.q.size, &k = in.k.size, &v = in.v.size;
  check.equal("key batch", k[0], "query batch", q[0]);
  check.equal("value batch", v[0], "key batch", k[0]);
  check.equal("value heads", v[1], "key heads", k[1]);
  check.equal("value rows", v[2], "key rows", k[2]);
  check.equal("key width", k[3], "query width", q[3]);
  check.require(k[1] == 0 ? q[1] == 0 : q[1] % k[1] == 0, "query heads ", q[1],
                " is not a multiple of key heads ", k[1]);
}

void check_offsets(const Checker& check, const char* name,
                   std::span<const std::int64_t> offsets, std::int64_t rows) {
  check.require(offsets.size() >= 2, name, " has ", offsets.size(),
                " entries, fewer than 2");
  check.require(offsets.front() == 0, name, "[0] ", offsets.front(), " != 0");
  for (std::size_t b = 1; b < offsets.size(); ++b) {
    check.require(offsets[b] >= offsets[b - 1], name, '[', b, "] ", offsets[b],
                  " < ", offsets[b - 1], " before it");
  }
  check.require(offsets.back() == rows, name, " ends at ", offsets.back(),
                " != total rows ", rows);
}

void check_activation(const Checker& check, const Activation& a) {
  using Kind = ActivationKind;
  check.require(a.kind >= Kind::kSoftmax && a.kind <= Kind::kRelu,
                "unknown activation kind ", static_cast<int>(a.kind));
  check.require(a.divisor >= Divisor::kOne && a.divisor <= Divisor::kSum,
                "unknown activation divisor ", static_cast<int>(a.divisor));
  check.require(a.kind != Kind::kSoftmax || a.divisor == Divisor::kSum,
                "softmax with activation divisor ", static_cast<int>(a.divisor),
                " != sum");
  check.require(a.degree >= 0 && a.degree <= kMaxDegree, "activation degree ",
                a.degree, " is not in 0..", kMaxDegree);
  check.require(a.kind != Kind::kRelu || a.degree >= 1, "activation degree ",
                a.degree, " of relu < 1");
  for (int i = 0; i <= kMaxDegree; ++i) {
    const double c = a.coefficient[static_cast<std::size_t>(i)];
    check.require(std::isfinite(c), "activation coefficient[", i, "] ", c,
                  " is not finite");
    check.require(a.kind != Kind::kPolynomial || i <= a.degree || c == 0,
                  "activation coefficient[", i, "] ", c, " above degree ",
                  a.degree);
  }
  const bool has_gain = a.kind == Kind::kSigmoid || a.kind == Kind::kRelu;
  check.require(std::isfinite(a.gain), "activation gain ", a.gain,
                " is not finite");
  check.require(has_gain || a.gain == 1, "activation gain ", a.gain,
                " != 1 without sigmoid or relu");
  check.require(!a.log_n_bias || a.kind == Kind::kSigmoid,
                "activation log_n_bias without sigmoid");
}

// A factor that is lost in the compute type would give zeros, or no numbers,
// without a word.
void check_fits(const Checker& check, const Activation& a, DType compute) {
  constexpr char kAdvice[] = "; compute in f64, or scale the formula";
  const auto becomes = [](double x) { return std::abs(x) < 1 ? "0" : "inf"; };
  for (int i = 0; i <= a.degree; ++i) {
    const double c = a.coefficient[static_cast<std::size_t>(i)];
    check.require(fits(c, compute), "activation coefficient[", i, "] ", c,
                  " becomes ", becomes(c), " in ", name_of(compute), kAdvice);
  }
  check.require(fits(a.gain, compute), "activation gain ", a.gain, " becomes ",
                becomes(a.gain), " in ", name_of(compute), kAdvice);
}

void check_config(const Checker& check, const AttentionConfig& config) {
  check_activation(check, config.activation);
  check.require(std::isfinite(config.scale.value_or(1)), "scale ",
                config.scale.value_or(1), " is not finite");
  check.require(config.causal <= Causal::kLast, "unknown causal ",
                static_cast<int>(config.causal));
  check.require(config.compute == DType::kF32 || config.compute == DType::kF64,
                "compute type ",
                known(config.compute) ? name_of(config.compute) : "?",
                " is neither f32 nor f64");
  check_fits(check, config.activation, config.compute);
  check.require(config.path <= Path::kLinear, "unknown path ",
                static_cast<int>(config.path));
  const Dropout& dropout = config.dropout;
  check.require(dropout.p >= 0 && dropout.p < 1, "dropout p ", dropout.p,
                " is not in [0, 1)");
  check.require(dropout.first_head >= 0, "dropout first_head ",
                dropout.first_head, " < 0");
  check.require(config.window.left >= -1, "window left ", config.window.left,
                " < -1 (no limit)");
  check.require(config.window.right >= -1, "window right ", config.window.right,
                " < -1 (no limit)");
  check.require(config.chunk >= 0 && config.chunk <= kMostChunk, "chunk ",
                config.chunk, " is not in 0 .. ", kMostChunk);
}

std::int64_t longest(std::span<const std::int64_t> offsets) {
  std::int64_t length = 0;
  for (std::size_t b = 1; b < offsets.size(); ++b) {
    length = std::max(length, offsets[b] - offsets[b - 1]);
  }
  return length;
}

void set_sizes(const Checker& check, Problem& p) {
  p.batch = p.in.q.size[0];
  p.heads = p.in.q.size[1];
  p.kv_heads = p.in.k.size[1];
  p.n = p.in.q.size[2];
  p.m = p.in.k.size[2];
  p.d = p.in.q.size[3];
  p.e = p.in.v.size[3];
  const auto &q = p.in.q_offsets, &k = p.in.k_offsets;
  check.equal("k_offsets length", std::ssize(k), "q_offsets length",
              std::ssize(q));
  if (!p.ragged()) return;
  check.equal("query batch", p.batch, "batch of a ragged call", 1);
  check_offsets(check, "q_offsets", q, p.n);
  check_offsets(check, "k_offsets", k, p.m);
  p.batch = std::ssize(q) - 1;
  p.n = longest(q);
  p.m = longest(k);
}

// Takes away limits that no row can meet, so that a window as long as the
// sequence is the call without one, to the last bit.
void drop_idle_limits(Problem& p) {
  const std::int64_t last = p.causal == Causal::kLast ? p.m - 1 : p.n - 1;
  if (p.window.left >= last) p.window.left = -1;
  if (p.causal != Causal::kNone || p.window.right >= p.m - 1)
    p.window.right = -1;
}

// A width of 0 would hide more rows than can be counted.
void check_counts(const Checker& check, const Problem& p) {
  constexpr std::int64_t kLimit = kMax / sizeof(AttentionStats);
  const Extents& q = p.in.q.size;
  check.require(saturating_count({q[0], q[1], q[2], 1}) <= kLimit,
                "q has more than ", kLimit, " rows");
  check.require(saturating_count({p.batch, p.heads, 1, 1}) <= kLimit,
                "q has more than ", kLimit, " heads in all");
}

void check_extras(const Checker& check, const Problem& p) {
  const Extents full = {p.batch, p.heads, p.n, p.m};
  if (p.in.bias) {
    check.addressable({"bias", *p.in.bias});
    check.broadcasts_to({"bias", *p.in.bias}, full);
  }
  if (p.in.mask) {
    check.addressable({"mask", *p.in.mask});
    check.broadcasts_to({"mask", *p.in.mask}, full);
  }
  if (!p.decays()) return;
  const Extents& k = p.in.k.size;
  check.dense_rows({"log_decay", *p.in.log_decay});
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t size = p.in.log_decay->size[i];
    check.require(size == 1 || (i < 3 && size == k[i]), "log_decay size[", i,
                  "] ", size, " is neither 1 nor ", i < 3 ? k[i] : 1);
  }
}

// What goes together with decay.
void check_decay(const Checker& check, const Problem& p) {
  if (!p.decays()) return;
  const Activation& a = p.activation;
  check.require(a.kind == ActivationKind::kPolynomial,
                "log_decay is for polynomials, and ", a.to_string(),
                " is none");
  check.require(p.causal != Causal::kNone,
                "log_decay without causality: causal is none");
  check.require(!p.in.bias, "log_decay together with a bias");
  check.require(p.dropout.p == 0, "log_decay together with dropout p ",
                p.dropout.p);
  check.require(!p.windowed(), "log_decay together with a window of ",
                p.window.left, " keys");
  check.require(p.path != Path::kDense,
                "log_decay has no dense path: path is dense");
}

Extents output_size(const Problem& p) {
  return {p.in.q.size[0], p.heads, p.in.q.size[2], p.e};
}

std::int64_t row_count(const Problem& p) {
  return p.in.q.size[0] * p.heads * p.in.q.size[2];
}

void check_like_output(const Checker& check, const Problem& p,
                       const Argument& a) {
  check.dense_rows(a);
  check.same_size(a, output_size(p), "the output [B, H, N, E]");
}

}  // namespace

Problem check_problem(const char* op, const AttentionInputs& inputs,
                      const AttentionConfig& config) {
  const Checker check(op);
  check_config(check, config);
  check.dense_rows({"q", inputs.q});
  check.dense_rows({"k", inputs.k});
  check.dense_rows({"v", inputs.v});
  check_shapes(check, inputs);
  Problem p;
  p.in = inputs;
  p.activation = config.activation;
  p.causal = config.causal;
  p.compute = config.compute;
  p.path = config.path;
  p.dropout = config.dropout;
  p.chunk = config.chunk;
  p.window = config.window;
  set_sizes(check, p);
  drop_idle_limits(p);
  const std::int64_t width = std::max<std::int64_t>(p.d, 1);
  p.scale = config.scale.value_or(1 / std::sqrt(static_cast<double>(width)));
  check_counts(check, p);
  check_extras(check, p);
  check_decay(check, p);
  return p;
}

void check_results(const char* op, const Problem& problem,
                   const AttentionResults& results) {
  const Checker check(op);
  check_like_output(check, problem, {"o", results.o});
  check.writable({"o", results.o});
  if (!results.rows.empty()) {
    check.equal("rows length", std::ssize(results.rows), "B * H * N",
                row_count(problem));
  }
  if (!results.stats.empty()) {
    check.equal("stats length", std::ssize(results.stats), "B * H",
                problem.batch * problem.heads);
  }
  check_decay_values(op, problem);
}

void check_backward(const char* op, const Problem& problem,
                    const AttentionBackwardInputs& backward,
                    const AttentionGradients& gradients) {
  const Checker check(op);
  check_like_output(check, problem, {"d_o", backward.d_o});
  if (problem.activation.divisor == Divisor::kSum || gradients.d_log_decay) {
    check_like_output(check, problem, {"o", backward.o});
  }
  check.equal("rows length", std::ssize(backward.rows), "B * H * N",
              row_count(problem));
  check_gradient(op, "dq", problem.in.q, gradients.dq);
  check_gradient(op, "dk", problem.in.k, gradients.dk);
  check_gradient(op, "dv", problem.in.v, gradients.dv);
  check.require(problem.in.bias.has_value() || !gradients.d_bias,
                "d_bias without a bias");
  if (gradients.d_bias)
    check_gradient(op, "d_bias", *problem.in.bias, gradients.d_bias);
  check.require(problem.decays() || !gradients.d_log_decay,
                "d_log_decay without log_decay");
  if (gradients.d_log_decay)
    check_gradient(op, "d_log_decay", *problem.in.log_decay,
                   gradients.d_log_decay);
  check_decay_values(op, problem);
}

void check_double_backward(const char* op, const Problem& problem,
                           const AttentionDoubleInputs& second,
                           const AttentionDoubleGradients& gradients) {
  const Checker check(op);
  const AttentionInputs& in = problem.in;
  check.require(problem.path != Path::kLinear,
                "path linear: there is only the dense one");
  check.require(!problem.decays(), "log_decay: decay has no dense path");
  check.equal("rows length", std::ssize(second.rows), "B * H * N",
              row_count(problem));
  if (second.d_o) check_like_output(check, problem, {"d_o", *second.d_o});
  const auto cotangent = [&](const char* name, const ConstTensor& like,
                             const std::optional<ConstTensor>& u) {
    if (!u) return;
    check.dense_rows({name, *u});
    check.same_size({name, *u}, like.size, "its input");
  };
  cotangent("uq", in.q, second.uq);
  cotangent("uk", in.k, second.uk);
  cotangent("uv", in.v, second.uv);
  check.require(in.bias || !second.u_bias, "u_bias without a bias");
  if (second.u_bias) {
    check.addressable({"u_bias", *second.u_bias});
    check.same_size({"u_bias", *second.u_bias}, in.bias->size, "its input");
  }
  if (gradients.d_o) {
    check_like_output(check, problem, {"gradient of d_o", *gradients.d_o});
    check.writable({"gradient of d_o", *gradients.d_o});
  }
  check_gradient(op, "dq", in.q, gradients.dq);
  check_gradient(op, "dk", in.k, gradients.dk);
  check_gradient(op, "dv", in.v, gradients.dv);
  check.require(in.bias || !gradients.d_bias, "d_bias without a bias");
  if (gradients.d_bias)
    check_gradient(op, "d_bias", *in.bias, gradients.d_bias);
  check.require(second.d_o || !(gradients.dq || gradients.dk || gradients.dv ||
                                gradients.d_bias),
                "dq, dk, dv or d_bias wanted without d_o");
}

void check_gradient(const char* op, const char* name, const ConstTensor& like,
                    const std::optional<Tensor>& gradient) {
  if (!gradient) return;
  const Checker check(op);
  check.writable({name, *gradient});
  check.same_size({name, *gradient}, like.size, "its input");
}

bool fits(double x, DType compute) {
  if (compute == DType::kF64 || x == 0) return true;
  const auto rounded = static_cast<float>(x);
  return rounded != 0 && std::isfinite(rounded);
}

bool all_finite(const ConstTensor& t) {
  for (std::int64_t b = 0; b < t.size[0]; ++b)
    for (std::int64_t h = 0; h < t.size[1]; ++h)
      for (std::int64_t i = 0; i < t.size[2]; ++i)
        for (std::int64_t c = 0; c < t.size[3]; ++c)
          if (!std::isfinite(load_element(t.data, t.dtype,
                                          row_offset(t.stride, b, h, i) + c)))
            return false;
  return true;
}

}  // namespace polyattn
