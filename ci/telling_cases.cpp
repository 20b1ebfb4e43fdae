// SPDX-License-Identifier: Apache-2.0
#include "ci/telling_cases.h"

#include <algorithm>
#include <span>

#include "ci/candidates.h"
#include "fuzz/draw_case.h"
#include "properties/case_facts.h"

namespace lossgate::ci {
namespace {

constexpr std::uint64_t kSeed = 20;
constexpr int kDrawn = 48, kHostile = 32;
constexpr int kFurther = 512;      ///< in how many to look for what tells candidates apart
constexpr std::size_t kLeast = 6;  ///< cases that are asked in any case
constexpr int kEnough = 2;         ///< cases that show a difference, or a gap in a mask

/// Whole, contiguous and with the plain upstream gradient; none where no position counts, or of
/// which there is no result.
std::vector<Case> draw(const Formula& formula, fuzz::Profile profile, int first, int last) {
  std::vector<Case> cases;
  for (int i = first; i < last; ++i) {
    fuzz::Choices choices = fuzz::case_choices(kSeed, formula.signature().id, formula.dtype(),
                                               profile, static_cast<std::uint64_t>(i));
    Case c = fuzz::draw_case(formula.signature(), formula.dtype(), profile, choices);
    c.split = {};
    c.layout = Layout::contiguous;
    c.upstream = 1.0;
    const auto valid = valid_positions(formula.signature(), c);
    if (std::ranges::find(valid, true) == valid.end() || formula.refuses(c)) continue;
    cases.push_back(std::move(c));
  }
  return cases;
}

/// Everything that a case may tell from what it stands at.
std::vector<Candidate> differences(const reference::Loss& loss, const Case& c) {
  std::vector<Candidate> others;
  for (const Reduction reduction : reductions_of(loss.signature)) {
    others.push_back({.reduction = reduction, .options = {}});
  }
  for (const Option& option : loss.signature.options) {
    for (OptionValue& value : alternatives(option, *c.spec.find(option.name))) {
      others.push_back({.reduction = c.spec.reduction, .options = {{option.name, value}}});
    }
  }
  return others;
}

/// Whether something is masked between two positions of a sequence that count: a recursion over
/// tokens goes on behind it, or does not.
bool has_gap(const LossSignature& signature, const Case& c) {
  const std::vector<bool> valid = valid_positions(signature, c);
  const std::int64_t tokens = c.shape.positions();
  for (auto row = valid.begin(); row != valid.end(); row += tokens) {
    const auto first = std::find(row, row + tokens, true);
    const auto gap = std::find(first, row + tokens, false);
    if (std::find(gap, row + tokens, true) != row + tokens) return true;
  }
  return false;
}

/// What the function is told, and the defaults.
void set_options(const reference::Loss& loss, const Formula& formula, const OptionValues& values,
                 Case& c) {
  for (const Option& option : loss.signature.options) {
    const OptionValue* value = find_value(values, option.name);
    c.spec.set(option.name, value ? *value : option.standard);
  }
  follow(formula.signature(), c.spec);
}

/// Whether the case tells one of the others, which was not shown often enough, from what comes out
/// plainly; counts those that it shows.
bool shows(const Formula& formula, const Case& c, const Values& plain,
           std::span<const Candidate> others, std::vector<int>& shown) {
  bool any = false;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (shown[i] >= kEnough || !Formula::differ(plain, formula.values(c, others[i]))) continue;
    ++shown[i];
    any = true;
  }
  return any;
}

/// Keeps cases until each candidate was told from the first often enough.
class Telling {
 public:
  Telling(const Formula& formula, const std::vector<Candidate>& candidates)
      : formula_(formula),
        first_(candidates.front()),
        others_(std::span(candidates).subspan(1)),
        shown_(others_.size(), 0) {}

  bool is_done() const {
    return std::ranges::all_of(shown_, [](int n) { return n >= kEnough; });
  }
  void look_at(const Case& c) {
    if (shows(formula_, c, formula_.values(c, first_), others_, shown_)) kept_.push_back(c);
  }
  TellingCases found() const {
    TellingCases found{kept_, {false}};
    for (const int n : shown_) found.apart.push_back(n > 0);
    return found;
  }

 private:
  const Formula& formula_;
  const Candidate& first_;
  std::span<const Candidate> others_;
  std::vector<int> shown_;
  std::vector<Case> kept_;
};

}  // namespace

LossSignature plain_signature(const reference::Loss& loss, const impl::Subject& subject,
                              Dtype dtype) {
  impl::Subject plain = subject;
  plain.masked = Masked::zero;
  plain.masked_of_field.clear();
  plain.dtypes = {dtype};
  plain.contract.empty_rows = EmptyRows::counted;
  plain.micro_batches = plain.ranks = impl::Combination::none;
  return impl::narrowed(loss.signature, plain);
}

std::vector<Case> telling_cases(const reference::Loss& loss, const Formula& formula,
                                const OptionValues& values) {
  std::vector<Case> kept;
  std::vector<int> shown;
  int gaps = 0;
  for (Case& c : draw(formula, fuzz::Profile::benign, 0, kDrawn)) {
    set_options(loss, formula, values, c);
    const auto others = differences(loss, c);
    shown.resize(others.size(), 0);
    const Values plain = formula.values(c, {.reduction = c.spec.reduction, .options = {}});
    const bool gap = gaps < kEnough && has_gap(formula.signature(), c);
    gaps += gap;
    const bool tells = shows(formula, c, plain, others, shown) || gap;
    if (tells || kept.size() < kLeast) kept.push_back(std::move(c));
  }
  const LossSignature& signature = formula.signature();
  const bool can_have_gaps = properties::has_positions(signature) && !signature.prefix_mask;
  for (int i = kDrawn; can_have_gaps && i < kFurther && gaps < kEnough; ++i) {
    for (Case& c : draw(formula, fuzz::Profile::benign, i, i + 1)) {
      if (!has_gap(signature, c)) continue;
      ++gaps;
      set_options(loss, formula, values, c);
      kept.push_back(std::move(c));
    }
  }
  return kept;
}

std::vector<Case> hostile_cases(const Formula& formula) {
  return draw(formula, fuzz::Profile::hostile, 0, kHostile);
}

TellingCases hostile_cases_that_tell(const Formula& formula,
                                     const std::vector<Candidate>& candidates) {
  Telling telling(formula, candidates);
  for (int i = kHostile; i < kHostile + kFurther && !telling.is_done(); ++i) {
    for (const Case& c : draw(formula, fuzz::Profile::hostile, i, i + 1)) telling.look_at(c);
  }
  return telling.found();
}

TellingCases cases_that_tell(const Formula& formula, const std::vector<Candidate>& candidates,
                             const std::vector<Case>& cases) {
  Telling telling(formula, candidates);
  for (const Case& c : cases) {
    if (!telling.is_done()) telling.look_at(c);
  }
  return telling.found();
}

}  // namespace lossgate::ci
