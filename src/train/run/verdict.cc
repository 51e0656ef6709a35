// The outcome of a comparison in words, which say no more than the runs allow.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/run/comparison.h"

namespace polyattn::run {
namespace {

// So many of the others are told one by one.
constexpr std::size_t kMaxToldInShort = 3;

// How the figure is written.
struct Style {
  double factor;  // 100 for per cent
  int decimals;
  const char* before;  // "reaches a loss of 1.2"
  const char* unit;
  const char* difference_unit;
  bool lower_is_better;
};

Style style_of(Figure figure) {
  switch (figure) {
    case Figure::kAccuracy:
      return {100, 1, "", " %", " points", false};
    case Figure::kBitsPerByte:
      return {1, 3, "", " bits per byte", "", true};
    default:
      return {1, 3, "a loss of ", "", "", true};
  }
}

// Differences in the last digit get one more, so that no "0.0 less" is read.
int decimals_for(const ComparisonRow& row, const Style& style) {
  const double unit = std::pow(10.0, -style.decimals) / 2;
  const bool small = std::abs(row.difference) * style.factor < unit ||
                     (row.pairs > 1 && row.half_width * style.factor < unit);
  return style.decimals + (small ? 1 : 0);
}

// "+0.3", and "0.0" for what is rounded to it.
std::string with_sign(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  const double rounded = std::round(value * scale) / scale;
  if (rounded == 0) return fmt::format("{:.{}f}", 0.0, decimals);
  return fmt::format("{:+.{}f}", rounded, decimals);
}

std::string difference_text(const ComparisonRow& row, const Style& style) {
  const int decimals = decimals_for(row, style);
  const std::string size =
      fmt::format("{:.{}f}", std::abs(row.difference) * style.factor, decimals);
  const bool zero = with_sign(row.difference * style.factor, decimals) ==
                    fmt::format("{:.{}f}", 0.0, decimals);
  return fmt::format("{}{} {}", size, style.difference_unit,
                     zero                 ? "apart"
                     : row.difference < 0 ? "less"
                                          : "more");
}

std::string interval_text(const ComparisonRow& row, const Style& style) {
  const int decimals = decimals_for(row, style);
  return fmt::format(
      "{} to {}",
      with_sign((row.difference - row.half_width) * style.factor, decimals),
      with_sign((row.difference + row.half_width) * style.factor, decimals));
}

enum class Judgement { kBetter, kWorse, kUnclear };

Judgement judge(double difference, double error, const Style& style) {
  // Also if either is NaN.
  if (!(std::abs(difference) > error)) return Judgement::kUnclear;
  return (difference > 0) == style.lower_is_better ? Judgement::kWorse
                                                   : Judgement::kBetter;
}

const char* words_for(Judgement judgement) {
  switch (judgement) {
    case Judgement::kBetter:
      return "better";
    case Judgement::kWorse:
      return "worse";
    default:
      return "no significant difference";
  }
}

class Verdict {
 public:
  explicit Verdict(const Comparison& comparison)
      : c_(comparison),
        style_(style_of(comparison.figure)),
        baseline_(comparison.rows[comparison.baseline]) {}

  std::string text() const;

 private:
  std::string figures() const;
  std::string fates() const;
  std::vector<const ComparisonRow*> others() const;
  std::string reaches(const ComparisonRow& row, double value) const;
  std::string alone(const ComparisonRow& row) const;
  std::string in_full(const ComparisonRow& row) const;
  std::string of_one_seed(const ComparisonRow& row) const;
  std::string in_short(const std::vector<const ComparisonRow*>& rows) const;
  Judgement judgement(const ComparisonRow& row) const;

  const Comparison& c_;
  Style style_;
  const ComparisonRow& baseline_;
};

// "x^3 reaches 87.1 %".
std::string Verdict::reaches(const ComparisonRow& row, double value) const {
  return fmt::format("{} reaches {}{:.{}f}{}", row.activation, style_.before,
                     value * style_.factor, decimals_for(row, style_),
                     style_.unit);
}

std::string Verdict::alone(const ComparisonRow& row) const {
  std::string text = fmt::format("{} reaches {}{:.{}f}{}", row.activation,
                                 style_.before, row.figure.mean * style_.factor,
                                 style_.decimals, style_.unit);
  if (row.finished == 1) return text + " (one run)";
  return fmt::format("{} ({} runs, standard deviation {:.{}f})", text,
                     row.finished, row.figure.deviation * style_.factor,
                     style_.decimals);
}

// The sampling error of the difference, as if the two were tested on different
// examples: on the same ones it is smaller.
double chance_of(const ComparisonRow& row, std::int64_t count) {
  return std::hypot(base::sampling_error(row.paired_mean, count),
                    base::sampling_error(row.baseline_mean, count));
}

Judgement Verdict::judgement(const ComparisonRow& row) const {
  if (row.pairs < 2) return Judgement::kUnclear;
  return judge(row.difference, row.half_width, style_);
}

std::string Verdict::of_one_seed(const ComparisonRow& row) const {
  if (c_.figure != Figure::kAccuracy || c_.test_count == 0) {
    return ", with one seed, which cannot tell how seeds scatter.";
  }
  const double chance = chance_of(row, c_.test_count);
  const Judgement by_chance = judge(row.difference, chance, style_);
  return fmt::format(
      ", with one seed, which cannot tell more than the sampling error of the "
      "test set ({:.{}f} points for {} examples, 95 %): {}.",
      chance * 100, style_.decimals, c_.test_count,
      by_chance == Judgement::kUnclear
          ? words_for(by_chance)
          : fmt::format("{} by more than that, for this seed",
                        words_for(by_chance)));
}

std::string Verdict::in_full(const ComparisonRow& row) const {
  if (row.pairs == 0) {
    return fmt::format("{}, {}: no seed has both, so they are not compared.",
                       alone(row), alone(baseline_));
  }
  const std::string start = fmt::format(
      "{} against {:.{}f}{} for {}: {}", reaches(row, row.paired_mean),
      row.baseline_mean * style_.factor, decimals_for(row, style_),
      c_.figure == Figure::kAccuracy ? style_.unit : "", baseline_.activation,
      difference_text(row, style_));
  if (row.pairs == 1) return start + of_one_seed(row);
  return fmt::format("{} (95 % interval {}, {} seeds): {}.", start,
                     interval_text(row, style_), row.pairs,
                     words_for(judgement(row)));
}

std::string Verdict::in_short(
    const std::vector<const ComparisonRow*>& rows) const {
  if (rows.size() > kMaxToldInShort) {
    const auto count = [&](Judgement wanted) {
      return std::count_if(rows.begin(), rows.end(), [&](const auto* row) {
        return judgement(*row) == wanted;
      });
    };
    return fmt::format(
        "Of the {} others {} better, {} worse, {} without a significant "
        "difference.",
        rows.size(), count(Judgement::kBetter), count(Judgement::kWorse),
        count(Judgement::kUnclear));
  }
  std::string text;
  for (const ComparisonRow* row : rows) {
    if (!text.empty()) text += "; ";
    if (row->pairs == 0) {
      text += alone(*row);
    } else if (row->pairs == 1) {
      text += fmt::format("{}: {}, one seed", row->activation,
                          difference_text(*row, style_));
    } else {
      text += fmt::format(
          "{}: {} ({}), {}", row->activation, difference_text(*row, style_),
          interval_text(*row, style_), words_for(judgement(*row)));
    }
  }
  return text + ".";
}

// Those that can be compared, the best first.
std::vector<const ComparisonRow*> Verdict::others() const {
  std::vector<const ComparisonRow*> rows;
  for (const ComparisonRow& row : c_.rows) {
    if (&row != &baseline_ && row.finished > 0) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) {
    if ((a->pairs > 0) != (b->pairs > 0)) return a->pairs > 0;
    return style_.lower_is_better ? a->figure.mean < b->figure.mean
                                  : a->figure.mean > b->figure.mean;
  });
  return rows;
}

std::string Verdict::figures() const {
  const auto rows = others();
  if (baseline_.finished == 0) {
    if (rows.empty()) return "No run has finished.";
    std::string text;
    for (const ComparisonRow* row : rows) {
      text += (text.empty() ? "" : "; ") + alone(*row);
    }
    return fmt::format("{}. No run of {} has finished to compare with.", text,
                       baseline_.activation);
  }
  if (rows.empty()) {
    return alone(baseline_) + ". There is nothing to compare it with.";
  }
  std::string text = in_full(*rows.front());
  if (rows.size() > 1) {
    text += fmt::format(" {}", in_short({rows.begin() + 1, rows.end()}));
  }
  return text;
}

// What became of the runs that gave no figure.
std::string Verdict::fates() const {
  std::string text;
  for (const ComparisonRow& row : c_.rows) {
    const int all = row.finished + row.diverged + row.other;
    if (row.diverged > 0) {
      text +=
          fmt::format(" {} diverged in {} of {} {}{}.", row.activation,
                      row.diverged, all, all == 1 ? "run" : "runs",
                      row.finished > 0 ? ", which the figures leave out" : "");
    }
    if (row.other > 0) {
      text += fmt::format(" {} of {} {} of {} {} not finished.", row.other, all,
                          all == 1 ? "run" : "runs", row.activation,
                          row.other == 1 ? "has" : "have");
    }
  }
  return text;
}

std::string Verdict::text() const {
  std::string text = figures() + fates();
  for (const std::string& caution : c_.cautions) {
    text += fmt::format(" {}", caution);
  }
  return text;
}

}  // namespace

std::string verdict(const Comparison& comparison) {
  if (comparison.rows.empty()) return "There are no runs.";
  return Verdict(comparison).text();
}

}  // namespace polyattn::run
