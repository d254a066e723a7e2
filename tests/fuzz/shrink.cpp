#include "tests/fuzz/shrink.h"

#include <algorithm>

#include "tests/fuzz/families.h"

namespace qkv::fuzz {
namespace {

using Choices = std::vector<std::uint32_t>;

constexpr int most_trials = 800;

class Shrinker {
 public:
  Shrinker(const Choices& choices, const Kind& kind)
      : kind_(kind), choices_(choices), case_(drawn(choices_)), wanted_(kind_of(case_)) {}

  Case run() {
    for (bool smaller = true; smaller && trials_ < most_trials;) {
      smaller = remove_chunks();
      smaller = lower_choices() || smaller;
    }
    simplify_values();
    return case_;
  }

 private:
  /// Draws the case and leaves in `choices` those that were made.
  static Case drawn(Choices& choices) {
    Draw draw(choices);
    Case sample = draw_case(draw);
    choices = draw.choices();
    return sample;
  }
  std::string kind_of(const Case& sample) {
    ++trials_;
    return sample.steps.empty() ? "" : sample.family + " " + kind_(sample);
  }
  static bool simpler(const Choices& a, const Choices& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
  bool accept(Choices candidate) {
    if (trials_ >= most_trials) return false;
    Case sample = drawn(candidate);
    if (!simpler(candidate, choices_) || kind_of(sample) != wanted_) return false;
    choices_ = std::move(candidate);
    case_ = std::move(sample);
    return true;
  }
  bool remove_chunks() {
    bool any = false;
    for (std::size_t size = 8; size > 0; size /= 2)
      for (std::size_t i = 0; i + size <= choices_.size();) {
        Choices fewer = choices_;
        const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(i);
        fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(size));
        if (accept(fewer))
          any = true;
        else
          ++i;
      }
    return any;
  }
  bool lower_choices() {
    bool any = false;
    for (std::size_t i = 0; i < choices_.size(); ++i)
      for (std::uint32_t lower : {0U, 1U, choices_[i] / 2, choices_[i] - 1}) {
        if (i >= choices_.size() || lower >= choices_[i]) continue;
        Choices less = choices_;
        less[i] = lower;
        any = accept(less) || any;
      }
    return any;
  }
  bool accept_values(std::size_t input, std::vector<double> values) {
    if (trials_ >= 2 * most_trials) return false;
    Case sample = case_;
    sample.inputs[input].values = std::move(values);
    if (kind_of(sample) != wanted_) return false;
    case_ = std::move(sample);
    return true;
  }
  void simplify_values() {
    for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
      const std::size_t count = case_.inputs[i].values.size();
      if (accept_values(i, std::vector<double>(count, 0)) ||
          accept_values(i, std::vector<double>(count, 1)) || count > 100)
        continue;
      for (std::size_t e = 0; e < count; ++e)
        for (const double value : {0.0, 1.0, -1.0, 2.0, std::round(case_.inputs[i].values[e]),
                                   std::round(case_.inputs[i].values[e] * 10) / 10}) {
          std::vector<double> values = case_.inputs[i].values;
          if (values[e] == value) break;
          values[e] = value;
          if (accept_values(i, values)) break;
        }
    }
  }

  const Kind& kind_;
  Choices choices_;
  int trials_ = 0;
  Case case_;
  std::string wanted_;
};

}  // namespace

Case shrunk(const std::vector<std::uint32_t>& choices, const Kind& kind) {
  return Shrinker(choices, kind).run();
}

}  // namespace qkv::fuzz
