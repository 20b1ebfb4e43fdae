// SPDX-License-Identifier: Apache-2.0
#include "ci/solution.h"

#include <algorithm>

#include "ci/candidates.h"

namespace lossgate::ci {
namespace {

constexpr int kRounds = 12;
/// Significant digits that somebody may have typed.
constexpr int kTyped = 3;
/// What a step has to leave of the distance to be worth another.
constexpr double kProgress = 0.98;

OptionValues rounded(OptionValues values, int digits) {
  for (auto& [name, value] : values) {
    if (double* number = std::get_if<double>(&value)) *number = to_digits(*number, digits);
  }
  return values;
}

/// The reductions under which something may explain what nothing explains yet.
std::vector<Reduction> unexplained(const Interview& interview) {
  const auto& whole = interview.best().whole;
  if (!interview.greeting.reduction && !whole.empty()) return {};
  if (!interview.greeting.reduction) return reductions_of(interview.loss->signature);
  std::vector<Reduction> rest;
  for (const Answers& answers : interview.answers) {
    const bool known = std::ranges::find(whole, answers.reduction) != whole.end();
    if (!known) rest.push_back(answers.reduction);
  }
  return rest;
}

/// Under all reductions that it was told.
std::vector<Reduction> whole_under(const Interview& interview, const OptionValues& untold) {
  std::vector<Reduction> whole;
  for (const Answers& answers : interview.answers) {
    const Likeness one = liken(interview, untold, answers.reduction);
    whole.insert(whole.end(), one.whole.begin(), one.whole.end());
  }
  return whole;
}

/// Whether the formula is the same under the reduction as under one that is explained already: a
/// function that does not tell them apart is not told by both.
bool says_nothing_new(const Interview& interview, Reduction reduction, const OptionValues& untold) {
  const auto& probes = interview.answers.front().probes;
  return std::ranges::any_of(interview.best().whole, [&](Reduction known) {
    return std::ranges::none_of(probes, [&](const Probe& probe) {
      const Formula& formula = interview.formula;
      return Formula::differ(formula.values(probe.c, {known, untold}),
                             formula.values(probe.c, {reduction, untold}));
    });
  });
}

/// The likest candidate under a reduction.
const Likeness* likest(const Interview& interview, Reduction reduction) {
  const auto found = std::ranges::find_if(interview.likenesses, [&](const Likeness& likeness) {
    return likeness.candidate.reduction == reduction;
  });
  return found == interview.likenesses.end() ? &interview.best() : &*found;
}

bool likelier(const Likeness& a, const Likeness& b) {
  if (a.whole.empty() != b.whole.empty()) return b.whole.empty();
  return a.equal != b.equal ? a.equal > b.equal : a.distance < kProgress * b.distance;
}

/// Moves one option to a value that is usual for it, or two at once where one alone does not help,
/// as long as that helps.
Likeness by_usual_values(const Interview& interview, Likeness from,
                         const std::vector<std::string>& options) {
  const LossSignature& loss = interview.loss->signature;
  OptionValues moves;
  for (const std::string& name : options) {
    for (OptionValue& value : usual_values(loss, *loss.find_option(name))) {
      moves.emplace_back(name, std::move(value));
    }
  }
  for (int round = 0; round < kRounds && from.whole.empty(); ++round) {
    Likeness best = from;
    const auto go = [&](const OptionValues& to) {
      OptionValues values = from.candidate.options;
      for (const auto& [name, value] : to) set_value(values, name, value);
      if (values == from.candidate.options) return;
      Likeness moved = liken(interview, values, from.candidate.reduction);
      if (likelier(moved, best)) best = std::move(moved);
    };
    for (const auto& move : moves) go({move});
    // Two at once are many; of what explains nothing they are not worth it.
    const bool stuck = from.equal > 0 && !likelier(best, from);
    for (std::size_t i = 0; stuck && i < moves.size(); ++i) {
      for (std::size_t j = i + 1; j < moves.size(); ++j) {
        if (moves[i].first != moves[j].first) go({moves[i], moves[j]});
      }
    }
    if (!likelier(best, from)) break;
    from = std::move(best);
  }
  return from;
}

/// Through usual numbers first: of several that are written into it a descent finds others, each of
/// which makes up for the next.
Likeness fit(const Interview& interview, const Likeness& from,
             const std::vector<std::string>& options) {
  const Likeness usual = by_usual_values(interview, from, options);
  if (!usual.whole.empty()) return usual;
  Likeness found = descend(interview, from, options);
  if (!found.whole.empty() || usual.equal <= from.equal) return found;
  Likeness further = descend(interview, usual, options);  // one of them is not usual
  return likelier(further, found) ? further : found;
}

/// Which options move nothing in the formula from where it stands, on any case: they belong to
/// terms that are not there, or to another reduction. To know it of a bound or a factor the ends of
/// its range are enough, where those are not the same, and what is usual besides.
class Inert {
 public:
  Inert(const Interview& interview, const Candidate& from) : interview_(interview), from_(from) {
    for (const Probe& probe : interview.probes(from.reduction)) {
      stands_.push_back(interview.formula.values(probe.c, from));
    }
  }

  bool operator()(const Option& option) const {
    const bool number = option.kind == Option::Kind::real || option.kind == Option::Kind::integer;
    std::vector<OptionValue> values = usual_values(interview_.loss->signature, option);
    if (number) values.insert(values.end(), {option.low, option.high});
    return std::ranges::none_of(values,
                                [&](const OptionValue& value) { return moves(option, value); });
  }

 private:
  bool moves(const Option& option, const OptionValue& value) const {
    Candidate moved = from_;
    set_value(moved.options, option.name, value);
    const auto& probes = interview_.probes(from_.reduction);
    for (std::size_t i = 0; i < probes.size(); ++i) {
      if (interview_.formula.values(probes[i].c, moved) != stands_[i]) return true;
    }
    return false;
  }

  const Interview& interview_;
  const Candidate& from_;
  std::vector<Values> stands_;
};

}  // namespace

Likeness descend(const Interview& interview, Likeness from,
                 const std::vector<std::string>& options) {
  const auto at = [&](const std::string& name, const OptionValue& value) {
    OptionValues values = from.candidate.options;
    set_value(values, name, value);
    return liken(interview, values, from.candidate.reduction);
  };
  for (int round = 0; round < kRounds && from.whole.empty(); ++round) {
    Nearest best{None{}, kProgress * from.distance};
    const Option* moved = nullptr;
    const Candidate here = from.candidate;
    const Inert inert(interview, here);
    for (const std::string& name : options) {
      const Option& option = *interview.loss->signature.find_option(name);
      if (inert(option)) continue;
      const OptionValue* now = find_value(from.candidate.options, name);
      const Nearest found =
          nearest_value(option, now ? *now : option.standard,
                        [&](const OptionValue& value) { return at(name, value).distance; });
      if (found.distance < best.distance) best = found, moved = &option;
    }
    if (!moved) break;
    best = polished(*moved, best,
                    [&](const OptionValue& value) { return at(moved->name, value).distance; });
    from = at(moved->name, best.value);
    for (int digits = 1; digits <= kTyped && from.whole.empty(); ++digits) {
      Likeness typed =
          liken(interview, rounded(from.candidate.options, digits), from.candidate.reduction);
      if (!typed.whole.empty()) from = std::move(typed);
    }
  }
  return from;
}

void solve_untold(Interview& interview) {
  if (interview.likenesses.empty()) return;
  const auto untold = interview.open(interview.untold());
  for (const Reduction reduction : unexplained(interview)) {
    const OptionValues beginning = likest(interview, reduction)->candidate.options;
    Likeness found = fit(interview, liken(interview, beginning, reduction), untold);
    if (!found.whole.empty() && interview.greeting.reduction) {
      found.whole = whole_under(interview, found.candidate.options);
    }
    const Likeness& best = interview.best();
    const bool better = found.whole.empty()
                            ? best.whole.empty() && best.factor == 0.0 &&
                                  found.distance < best.distance && found.equal >= best.equal
                            : found.whole.size() > best.whole.size();
    if (!better || says_nothing_new(interview, reduction, found.candidate.options)) continue;
    interview.likenesses.insert(interview.likenesses.begin(), std::move(found));
    if (interview.whole() && !interview.greeting.reduction) return;
  }
}

}  // namespace lossgate::ci
