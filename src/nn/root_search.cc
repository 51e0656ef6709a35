#include "nn/root_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace polyattn::nn {
namespace {

constexpr double kLowest = -16;
constexpr double kTolerance = 1e-4;
constexpr int kMostCalls = 60;

// One function: walks down until it is not above zero, then closes in by false
// position, which halves the value at an end that stays (Illinois).
class Search {
 public:
  explicit Search(double at_zero) : high_value_(at_zero) {
    if (at_zero <= kTolerance) done_ = true;
  }

  bool done() const { return done_; }
  double place() const { return place_; }

  void propose(double slope) {
    if (done_) return;
    if (!bracketed_) {
      const double step =
          std::isfinite(high_value_) ? std::max(high_value_ / slope, 0.25) : 1;
      place_ = std::max(high_ - step, kLowest);
      return;
    }
    const double share = high_value_ / (high_value_ - low_value_);
    place_ = std::isfinite(share) ? high_ + share * (low_ - high_)
                                  : (low_ + high_) / 2;
  }

  void take(double value) {
    if (done_) return;
    if (std::abs(value) <= kTolerance) {
      done_ = true;
    } else if (value > 0) {
      if (!bracketed_ && place_ <= kLowest) {
        place_ = 0;
        done_ = true;
      }
      high_ = place_;
      high_value_ = value;
      if (kept_low_) low_value_ /= 2;
      kept_low_ = bracketed_;
      kept_high_ = false;
    } else {
      low_ = place_;
      low_value_ = value;
      if (kept_high_) high_value_ /= 2;
      kept_high_ = true;
      kept_low_ = false;
      bracketed_ = true;
    }
  }

 private:
  double place_ = 0;
  double low_ = 0, low_value_ = 0;
  double high_ = 0, high_value_ = 0;
  bool bracketed_ = false, kept_low_ = false, kept_high_ = false, done_ = false;
};

}  // namespace

std::vector<double> roots_below_zero(
    const std::vector<double>& at_zero,
    const std::function<std::vector<double>(const std::vector<double>&)>& f,
    double slope) {
  std::vector<Search> searches(at_zero.begin(), at_zero.end());
  std::vector<double> places(at_zero.size());
  for (int call = 0; call < kMostCalls; ++call) {
    if (std::all_of(searches.begin(), searches.end(),
                    [](const Search& s) { return s.done(); })) {
      break;
    }
    for (std::size_t i = 0; i < searches.size(); ++i) {
      searches[i].propose(slope);
      places[i] = searches[i].place();
    }
    const std::vector<double> values = f(places);
    for (std::size_t i = 0; i < searches.size(); ++i) {
      searches[i].take(values[i]);
    }
  }
  for (std::size_t i = 0; i < searches.size(); ++i) {
    places[i] = searches[i].place();
  }
  return places;
}

}  // namespace polyattn::nn
