// Formulas: what is accepted and refused, the canonical text, and the values
// and derivatives against a twin in long double.
#include "polyattn/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void expect_round_trip(const Activation& a) {
  const std::string text = a.to_string();
  const Activation again = Activation::parse(text);
  EXPECT_EQ(again, a) << text;
  EXPECT_EQ(again.to_string(), text);
  for (const double c : a.coefficient) {
    EXPECT_FALSE(c == 0 && std::signbit(c)) << text;
  }
}

struct Accepted {
  std::string_view formula, canonical;
};

constexpr Accepted kAccepted[] = {
    {"softmax", "softmax"},
    {"exp/sum", "softmax"},
    {" EXP / Sum ", "softmax"},
    {"x^3/sqrt(N)", "x^3/sqrt(N)"},
    {"x^3 / sqrt( N )", "x^3/sqrt(N)"},
    {"x^3/14", "x^3/14"},
    {"x^3", "x^3"},
    {"X", "x"},
    {"x/14", "x/14"},
    {"1 + x + x^2/2", "1 + x + x^2/2"},
    {"x^2/2+x+1", "1 + x + x^2/2"},
    {"x^4/sum", "x^4/sum"},
    {"(1 + x)^2/sqrt(N)", "(1 + 2*x + x^2)/sqrt(N)"},
    {"(1 + x)/2/N", "(0.5 + x/2)/N"},
    {"0.1*x^3/sqrt(N)", "x^3/10/sqrt(N)"},
    {"0.07*x", "0.07*x"},
    {"-x^3", "-x^3"},
    {"-1 - x/3", "-1 - x/3"},
    {"2x", "2*x"},
    {"2 x^2", "2*x^2"},
    {"2x^3(1 + x)", "2*x^3 + 2*x^4"},
    {"2x/3", "2*x/3"},
    {"1/2x", "x/2"},
    {"x x", "x^2"},
    {"x^0", "1"},
    {"((x^2)^2)^2", "x^8"},
    {"x^3/14/sqrt(N)", "x^3/14/sqrt(N)"},
    {"x^3/sqrt(N)/14", "x^3/14/sqrt(N)"},
    {"-x^3/N", "-x^3/N"},
    {"1e-3*x^2", "x^2/1000"},
    {"1E20x", "1e+20*x"},
    {".5x^2 + 5.", "5 + x^2/2"},
    {"(x - 1e-300)/N/1e300", "1e-300*x/N"},
    {"1/N", "1/N"},
    {"1/3/N", "1/3/N"},
    {"x^3 - x^3 + x", "x"},
    {"x - 0x^2", "x"},
    {"x\t^\n2", "x^2"},
    {"sigmoid", "sigmoid"},
    {"sigmoid(x)", "sigmoid(x)"},
    {"sigmoid/N", "sigmoid/N"},
    {"0.5*sigmoid", "0.5*sigmoid"},
    {"-2 sigmoid ( x )", "-2*sigmoid(x)"},
    {"sigmoid/3/sum", "sigmoid/3/sum"},
    {"relu", "relu"},
    {"relu^1", "relu"},
    {"relu/N", "relu/N"},
    {"relu^2/N", "relu^2/N"},
    {"relu(x)^2/N", "relu^2/N"},
    {"+2*relu^8/7", "2*relu^8/7"},
};

TEST(Formula, AcceptedAndCanonical) {
  for (const auto& [formula, canonical] : kAccepted) {
    SCOPED_TRACE(formula);
    const Activation a = Activation::parse(formula);
    EXPECT_EQ(a.to_string(), canonical);
    expect_round_trip(a);
  }
}

TEST(Formula, Members) {
  using enum ActivationKind;
  EXPECT_EQ(Activation::parse("softmax"), Activation{});
  EXPECT_EQ(Activation::parse("(1 - 3x + x^3/14)/sqrt(N)"),
            (Activation{.kind = kPolynomial,
                        .divisor = Divisor::kSqrtN,
                        .degree = 3,
                        .coefficient = {1, -3, 0, 1.0 / 14}}));
  EXPECT_EQ(Activation::parse("(2 - x)^3"),
            (Activation{.kind = kPolynomial,
                        .divisor = Divisor::kOne,
                        .degree = 3,
                        .coefficient = {8, -12, 6, -1}}));
  EXPECT_EQ(Activation::parse("-sigmoid/3"),
            (Activation{.kind = kSigmoid,
                        .divisor = Divisor::kOne,
                        .gain = -1.0 / 3,
                        .log_n_bias = true}));
  EXPECT_EQ(
      Activation::parse("0.5*relu^2/sum"),
      (Activation{
          .kind = kRelu, .divisor = Divisor::kSum, .degree = 2, .gain = 0.5}));
}

struct Refused {
  std::string_view formula;
  std::size_t column;
  std::string_view fragment;
};

constexpr Refused kRefused[] = {
    {"", 0, "empty"},
    {"  \n ", 4, "empty"},
    {"sofmax", 0, "'sofmax', did you mean softmax?"},
    {"1 + sigmiod", 4, "did you mean sigmoid?"},
    {"x/sqr(N)", 2, "did you mean sqrt?"},
    {"y", 0, "unknown word 'y': a formula knows x"},
    {"x/n", 2, "written N, not n"},
    {"x/sqrt(n)", 7, "written N, not n"},
    {"x^9", 2, "degree of a polynomial, are at most 8"},
    {"x^99999999999999999999", 2, "at most 8"},
    {"x^5*x^4", 3, "at most 8"},
    {"(x^3)^3", 6, "at most 8"},
    {"2^10", 2, "at most 8"},
    {"x^2.5", 2, "whole number"},
    {"x^x", 2, "whole number"},
    {"x^-1", 2, "cannot be negative"},
    {"x^2^3", 3, "(x^2)^3"},
    {"x**3", 2, "a power is written ^"},
    {"x2", 1, "write * or ^"},
    {"2 3", 2, "write * or ^"},
    {"1 + x + x^2/sqrt(N)", 11, "write (1 + x + x^2)/sqrt(N)"},
    {"1\n+ x / sum", 6, "write (1?+ x)/sum"},
    {"x^2/N + 1", 6, "divide the whole weight: write them last"},
    {"x/N*2", 3, "write them last"},
    {"(x/N)", 2, "write them last"},
    {"x/N/sqrt(N)", 4, "only one of sqrt(N), N and sum"},
    {"x/sum/sum", 6, "only one of"},
    {"N*x", 0, "may only divide"},
    {"sqrt(2)*x", 0, "the only root"},
    {"x/sqrt(2)", 7, "the only root"},
    {"x/sqrt 2", 7, "written sqrt(N)"},
    {"x/sqrt(N", 8, "closing parenthesis is missing"},
    {"x/x", 2, "only a number, sqrt(N), N or sum may divide"},
    {"x/-2", 2, "may divide"},
    {"x/0", 2, "division by zero"},
    {"softmax/2", 7, "softmax stands alone"},
    {"2*softmax", 2, "softmax stands alone"},
    {"exp", 0, "only as exp/sum"},
    {"exp/N", 0, "only as exp/sum"},
    {"x + exp/sum", 4, "only as exp/sum"},
    {"sigmoid^2", 7, "sigmoid takes no power"},
    {"sigmoid(2x)", 8, "x alone"},
    {"sigmoid + 1", 8, "one number in front"},
    {"x*relu", 2, "one number in front"},
    {"relu(x", 6, "closing parenthesis is missing"},
    {"relu^0", 5, "from 1 to 8"},
    {"relu^9", 5, "from 1 to 8"},
    {"(1 + x", 6, "closing parenthesis is missing"},
    {"1 + x)", 5, "no parenthesis is open"},
    {"relu)", 4, "no parenthesis is open"},
    {"x +", 3, "ends where a term should follow"},
    {"x/", 2, "may divide"},
    {"()", 1, "expected a number, x or ("},
    {"x + -1", 4, "expected a number, x or ("},
    {"x\xc2\xb2", 1, "no meaning"},
    {"x; 1", 1, "no meaning"},
    {".", 0, "needs a digit"},
    {"1e999*x", 0, "outside the range"},
    {"inf*x", 0, "unknown word"},
    {"nan", 0, "unknown word"},
    {"x*1e200*1e200", 7, "overflows"},
    {"x/1e-300/1e-300", 9, "overflows"},
    {"1e308 + 1e308", 6, "overflows"},
    {"0", 0, "zero for every x"},
    {"x - x", 0, "zero for every x"},
    {"0*sigmoid", 0, "zero for every x"},
};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

void expect_refused(const Refused& refused) {
  SCOPED_TRACE(refused.formula);
  std::string shown(refused.formula);
  for (char& c : shown) c = c >= ' ' && c <= '~' ? c : '?';
  try {
    ADD_FAILURE() << Activation::parse(refused.formula).to_string();
  } catch (const FormulaError& error) {
    EXPECT_EQ(error.column(), refused.column);
    const std::vector<std::string> lines = lines_of(error.what());
    ASSERT_EQ(lines.size(), 3u) << error.what();
    EXPECT_NE(lines[0].find(refused.fragment), std::string::npos) << lines[0];
    EXPECT_EQ(lines[1], shown);
    EXPECT_EQ(lines[2], std::string(refused.column, ' ') + "^");
  }
}

TEST(Formula, RefusedWithCaret) {
  for (const Refused& refused : kRefused) expect_refused(refused);
}

TEST(Formula, LimitsOfSize) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '(') + "x" + std::string(depth, ')');
  };
  EXPECT_EQ(Activation::parse(nested(64)).to_string(), "x");
  std::string side_by_side = "x";
  for (int i = 0; i < 65; ++i) side_by_side += " + (1)";
  EXPECT_EQ(Activation::parse(side_by_side).to_string(), "65 + x");
  expect_refused({nested(65), 64, "nested too deeply"});
  EXPECT_EQ(Activation::parse(std::string(999, ' ') + "x").degree, 1);
  try {
    Activation::parse(std::string(100000, '('));
    ADD_FAILURE();
  } catch (const FormulaError& error) {
    EXPECT_EQ(error.column(), 1000u);
    EXPECT_EQ(lines_of(error.what()).at(1).size(), 1000u);
  }
}

// Any finite double: random bits, a short quotient, or a neighbour of one,
// which must not be taken for it. Adding 0 turns -0, which parse never makes,
// into 0.
double random_coefficient(std::mt19937_64& random) {
  const double value = std::bit_cast<double>(std::uint64_t{random()});
  const double p = static_cast<double>(random() % 81) - 40;
  const double quotient = p / static_cast<double>(1 + random() % 40);
  switch (random() % 3) {
    case 0:
      return std::isfinite(value) ? value + 0.0 : 0;
    case 1:
      return quotient + 0.0;
    default:
      return std::nextafter(quotient, 1e9);
  }
}

TEST(Formula, RandomActivationsRoundTrip) {
  std::mt19937_64 random(20240607);
  for (int i = 0; i < 2000; ++i) {
    Activation p{.kind = ActivationKind::kPolynomial,
                 .divisor = static_cast<Divisor>(random() % 4),
                 .degree = static_cast<int>(random() % (kMaxDegree + 1))};
    for (int k = 0; k <= p.degree; ++k) {
      p.coefficient[k] = random() % 3 != 0 ? random_coefficient(random) : 0;
    }
    if (p.coefficient[p.degree] == 0) p.coefficient[p.degree] = 1;
    expect_round_trip(p);

    const bool relu = i % 2 == 0;
    Activation f{
        .kind = relu ? ActivationKind::kRelu : ActivationKind::kSigmoid,
        .divisor = p.divisor,
        .degree = relu ? 1 + p.degree % kMaxDegree : 0,
        .gain = random_coefficient(random),
        .log_n_bias = i % 4 == 1};
    if (f.gain == 0) f.gain = -1;
    expect_round_trip(f);
  }
}

// The definitions, in long double and without a thought for overflow.
long double twin(const Activation& a, long double x, long double n) {
  long double sum = 0;
  switch (a.kind) {
    case ActivationKind::kSoftmax:
      return std::exp(x);
    case ActivationKind::kPolynomial:
      for (int k = 0; k <= a.degree; ++k) {
        sum += a.coefficient[k] * std::pow(x, k);
      }
      return sum;
    case ActivationKind::kSigmoid:
      return a.gain / (1 + std::exp((a.log_n_bias ? std::log(n) : 0) - x));
    case ActivationKind::kRelu:
      return a.gain * std::pow(std::max(x, 0.0L), a.degree);
  }
  return sum;
}

// A bound on the derivative of order r on [-x, x], and on the sum of the
// absolute terms that make it up. Sigmoid: all derivatives up to the fourth
// stay below 1.
long double majorant(const Activation& a, long double x, int r) {
  if (a.kind == ActivationKind::kSoftmax) return std::exp(x);
  if (a.kind == ActivationKind::kSigmoid) return std::abs(a.gain);
  const bool relu = a.kind == ActivationKind::kRelu;
  long double sum = 0;
  for (int k = r; k <= a.degree; ++k) {
    const double c = relu ? (k == a.degree ? a.gain : 0) : a.coefficient[k];
    sum += std::abs(c) * std::tgamma(k + 1.0L) / std::tgamma(k - r + 1.0L) *
           std::pow(x, k - r);
  }
  return sum;
}

// Rounding error of order r in a precision of `epsilon`: a product and a sum
// for each degree, eight operations more for the library functions, which
// also magnify the error of their argument x - log n by its size.
long double rounding(const Activation& a, long double x, double n, int r,
                     long double epsilon) {
  return epsilon * (2 * a.degree + 8) * (1 + x + std::log(n)) *
         majorant(a, x, r);
}

void expect_near(double value, long double expected, long double tolerance) {
  EXPECT_LE(std::abs(value - expected), tolerance)
      << value << " against " << expected;
}

// Central differences of the twin with the step h that balances truncation,
// h^2/6 f(3), against rounding, e f/h. The tolerance adds these and the
// rounding of the double. x and h are short binary fractions, so x + h is
// exact.
void expect_derivatives(const Activation& a, double x, double n) {
  const long double fine = std::numeric_limits<long double>::epsilon();
  const long double coarse = std::numeric_limits<double>::epsilon();
  const long double h = std::exp2(std::round(std::log2(fine) / 3));
  const long double size = std::abs(x), end = size + h;
  const long double noise = rounding(a, end, n, 0, fine);
  const auto f = [&](long double at) { return twin(a, at, n); };

  expect_near(a.weight(x, n), f(x), rounding(a, size, n, 0, coarse));
  expect_near(a.weight_derivative(x, n), (f(x + h) - f(x - h)) / (2 * h),
              h * h / 6 * majorant(a, end, 3) + noise / h +
                  rounding(a, size, n, 1, coarse));
  // The second is the derivative of the first, whose noise is the double's.
  const double wide = 0x1p-18;
  const double slope =
      (a.weight_derivative(x + wide, n) - a.weight_derivative(x - wide, n)) /
      (2 * wide);
  expect_near(a.weight_second_derivative(x, n), slope,
              wide * wide / 6 * majorant(a, end + wide, 4) +
                  rounding(a, end + wide, n, 1, coarse) / wide +
                  rounding(a, size, n, 2, coarse));
}

TEST(Activation, ValuesAndDerivatives) {
  for (const std::string_view formula :
       {"softmax", "x", "1 + x + x^2/2", "-x^3/14", "(1 - x/2)^8", "3/N",
        "sigmoid", "-3*sigmoid(x)", "relu", "relu^2", "0.5*relu^5"}) {
    const Activation a = Activation::parse(formula);
    for (const double n : {1.0, 7.0, 4096.0}) {
      // Odd multiples of 1/16 miss 0, where relu has its corner.
      for (double x = -63.0 / 16; x < 4; x += 6.0 / 16) {
        SCOPED_TRACE(std::string(formula) + " at " + std::to_string(x));
        expect_derivatives(a, x, n);
      }
    }
  }
}

TEST(Activation, SigmoidFarOut) {
  for (const char* formula : {"2*sigmoid", "2*sigmoid(x)"}) {
    const Activation a = Activation::parse(formula);
    for (const double far : {1e4, 1e300, kInf}) {
      EXPECT_EQ(a.weight(far, 16), 2);
      EXPECT_EQ(a.weight(-far, 16), 0);
      for (const double x : {far, -far}) {
        EXPECT_EQ(a.weight_derivative(x, 16), 0);
      }
    }
    EXPECT_TRUE(std::isnan(a.weight(kNan, 16)));
  }
  // The upper tail keeps its relative precision: s' tends to exp(-x).
  EXPECT_DOUBLE_EQ(Activation::parse("sigmoid(x)").weight_derivative(100, 1),
                   std::exp(-100.0));
  EXPECT_DOUBLE_EQ(Activation::parse("sigmoid").weight(0, 3), 0.25);
}

TEST(Activation, ReluAtItsCorner) {
  for (int k = 1; k <= 8; ++k) {
    const Activation a = Activation::parse("-2*relu^" + std::to_string(k));
    for (const double x : {0.0, -0.0, -1.0, -kInf}) {
      EXPECT_EQ(a.weight(x, 1), 0);
      EXPECT_EQ(a.weight_derivative(x, 1), 0);
      EXPECT_EQ(a.weight_second_derivative(x, 1), 0);
    }
    EXPECT_EQ(a.weight(kInf, 1), -kInf);
    EXPECT_TRUE(std::isnan(a.weight(kNan, 1)));
    EXPECT_TRUE(std::isnan(a.weight_derivative(kNan, 1)));
  }
}

TEST(Activation, RowScale) {
  EXPECT_EQ(Activation::parse("x").row_scale(16), 1);
  EXPECT_EQ(Activation::parse("x/14").row_scale(16), 1);
  EXPECT_EQ(Activation::parse("x/sqrt(N)").row_scale(16), 0.25);
  EXPECT_EQ(Activation::parse("x/N").row_scale(16), 0.0625);
  EXPECT_EQ(Activation::parse("x/sum").row_scale(16), 1);
  EXPECT_EQ(Activation::parse("softmax").row_scale(16), 1);
}

}  // namespace
}  // namespace polyattn
