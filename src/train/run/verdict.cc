// The outcome of a comparison in words, which say no more than the runs allow.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "train/run/comparison.h"
#include "train/run/figure_text.h"

namespace polyattn::run {
namespace {

// So many of the others are told one by one.
constexpr std::size_t kMaxToldInShort = 3;

enum class Judgement { kBetter, kWorse, kUnclear };

Judgement judge(double difference, double error, const FigureStyle& style) {
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
        baseline_(comparison.rows[comparison.baseline]) {
    for (const ComparisonRow& row : comparison.rows) {
      of_one_seed_ += &row != &baseline_ && row.difference.pairs == 1 ? 1 : 0;
    }
  }

  std::string text() const;

 private:
  std::string figures() const;
  std::string seeds_to_come() const;
  std::string fates() const;
  std::vector<const ComparisonRow*> others() const;
  std::string reaches(const ComparisonRow& row, double value) const;
  std::string alone(const ComparisonRow& row) const;
  std::string in_full(const ComparisonRow& row) const;
  std::string of_one_seed(const ComparisonRow& row) const;
  std::string in_short(const std::vector<const ComparisonRow*>& rows) const;
  Judgement judgement(const ComparisonRow& row) const;
  double sampling_error(const ComparisonRow& row) const;

  const Comparison& c_;
  FigureStyle style_;
  const ComparisonRow& baseline_;
  int of_one_seed_ = 0;  // rows that have one in common with the baseline
};

// "x^3 reaches 87.1 %".
std::string Verdict::reaches(const ComparisonRow& row, double value) const {
  return fmt::format("{} reaches {}{:.{}f}{}", row.name(), style_.before,
                     value * style_.factor,
                     decimals_for(row.difference, style_), style_.unit);
}

std::string Verdict::alone(const ComparisonRow& row) const {
  std::string text = fmt::format("{} reaches {}{:.{}f}{}", row.name(),
                                 style_.before, row.figure.mean * style_.factor,
                                 style_.decimals, style_.unit);
  if (row.finished == 1) return text + " (one run)";
  return fmt::format("{} ({} runs, standard deviation {:.{}f})", text,
                     row.finished, row.figure.deviation * style_.factor,
                     style_.decimals);
}

Judgement Verdict::judgement(const ComparisonRow& row) const {
  const Difference& difference = row.difference;
  if (!difference.half_width) return Judgement::kUnclear;
  return judge(difference.mean, *difference.half_width, style_);
}

// The sampling error of the difference, as if the two were tested on different
// examples: on the same ones it is smaller. One of several is told, the best,
// so that it is that of all of them.
double Verdict::sampling_error(const ComparisonRow& row) const {
  const auto error = [&](double share) {
    return base::sampling_error(share, c_.test_count, of_one_seed_);
  };
  return std::hypot(error(row.paired_mean), error(row.baseline_mean));
}

std::string Verdict::of_one_seed(const ComparisonRow& row) const {
  if (c_.figure != Figure::kAccuracy || c_.test_count == 0) {
    return ", with one seed, which cannot tell how seeds scatter.";
  }
  const double error = sampling_error(row);
  const Judgement by_chance = judge(row.difference.mean, error, style_);
  return fmt::format(
      ", with one seed, which cannot tell more than the sampling error of the "
      "{} set ({:.{}f} points for {} examples, 95 %{}): {}.",
      c_.validation ? kValidation : "test", error * 100, style_.decimals,
      c_.test_count, of_one_seed_ > 1 ? ", all at once" : "",
      by_chance == Judgement::kUnclear
          ? words_for(by_chance)
          : fmt::format("{} by more than that, for this seed",
                        words_for(by_chance)));
}

std::string Verdict::in_full(const ComparisonRow& row) const {
  if (row.difference.pairs == 0) {
    return fmt::format("{}, {}: no seed has both, so they are not compared.",
                       alone(row), alone(baseline_));
  }
  const std::string start = fmt::format(
      "{} against {:.{}f}{} for {}: {}", reaches(row, row.paired_mean),
      row.baseline_mean * style_.factor, decimals_for(row.difference, style_),
      c_.figure == Figure::kAccuracy ? style_.unit : "", baseline_.name(),
      difference_text(row.difference, style_));
  if (row.difference.pairs == 1) return start + of_one_seed(row);
  return fmt::format("{} (95 % interval {}, {} seeds): {}.", start,
                     interval_text(row.difference, style_),
                     row.difference.pairs, words_for(judgement(row)));
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
    if (row->difference.pairs == 0) {
      text += alone(*row);
    } else if (row->difference.pairs == 1) {
      text += fmt::format("{}: {}, one seed", row->name(),
                          difference_text(row->difference, style_));
    } else {
      text += fmt::format("{}: {} ({}), {}", row->name(),
                          difference_text(row->difference, style_),
                          interval_text(row->difference, style_),
                          words_for(judgement(*row)));
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
    if ((a->difference.pairs > 0) != (b->difference.pairs > 0))
      return a->difference.pairs > 0;
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
                       baseline_.name());
  }
  if (rows.empty()) {
    return alone(baseline_) + ". There is nothing to compare it with.";
  }
  std::string text = in_full(*rows.front());
  if (rows.size() > 1) {
    text += fmt::format(" {}", in_short({rows.begin() + 1, rows.end()}));
  }
  if (c_.basis.intervals > 1) text += fmt::format(" {}.", interval_note(c_));
  return text + seeds_to_come();
}

// What it would take, if a difference is not significant. Of those that scatter
// too much to be pooled nothing is said.
std::string Verdict::seeds_to_come() const {
  int seeds = 0;
  bool unclear = false;
  for (const ComparisonRow& row : c_.rows) {
    if (!row.difference.half_width ||
        row.difference.pooled != (c_.basis.pooled > 0)) {
      continue;
    }
    seeds = std::max(seeds, row.difference.pairs);
    unclear = unclear || judgement(row) == Judgement::kUnclear;
  }
  if (!unclear) return "";
  const std::string size =
      fmt::format("{:.{}f}{}", style_.worth_telling * style_.factor,
                  style_.factor > 1 ? 1 : 2, style_.difference_unit);
  const auto needed = seeds_to_tell(style_.worth_telling, c_.basis);
  if (!needed) {
    return fmt::format(
        " To tell a difference of {} takes more than {} seeds (80 % power).",
        size, kMaxSeeds);
  }
  if (*needed <= seeds) {
    return fmt::format(" {} seeds tell a difference of {} (80 % power).", seeds,
                       size);
  }
  return fmt::format(
      " About {} more {} would tell a difference of {} (80 % power).",
      *needed - seeds, *needed - seeds == 1 ? "seed" : "seeds", size);
}

// What became of the runs that gave no figure.
std::string Verdict::fates() const {
  std::string text;
  for (const ComparisonRow& row : c_.rows) {
    const int all = row.finished + row.diverged + row.other;
    if (row.diverged > 0) {
      text +=
          fmt::format(" {} diverged in {} of {} {}{}.", row.name(),
                      row.diverged, all, all == 1 ? "run" : "runs",
                      row.finished > 0 ? ", which the figures leave out" : "");
    }
    if (row.other > 0) {
      text += fmt::format(" {} of {} {} of {} {} not finished.", row.other, all,
                          all == 1 ? "run" : "runs", row.name(),
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
