// SPDX-License-Identifier: Apache-2.0
#include "ci/ties.h"

#include <algorithm>
#include <span>
#include <utility>

#include "ci/candidates.h"
#include "ci/settling.h"
#include "ci/telling_cases.h"

namespace lossgate::ci {
namespace {

/// What the second has otherwise.
OptionValues difference(const Candidate& first, const Candidate& second) {
  OptionValues values;
  for (const auto& [name, value] : second.options) {
    const OptionValue* other = find_value(first.options, name);
    if (!other || *other != value) values.emplace_back(name, value);
  }
  return values;
}

class Ties {
 public:
  Ties(Function& function, Interview& interview) : function_(function), interview_(interview) {
    auto& likenesses = interview.likenesses;
    const std::vector<Reduction> whole = interview.best().whole;
    std::erase_if(likenesses, [&](const Likeness& likeness) { return likeness.whole != whole; });
    apart_.resize(likenesses.size());
  }

  std::vector<OptionValues> settled() {
    ask_all(hostile_cases(interview_.formula));
    find_best();
    for (std::size_t before = SIZE_MAX; places_.size() > 1 && places_.size() < before;) {
      before = places_.size();
      ask_what_tells(hostile_cases_that_tell(interview_.formula, tied()));
    }
    for (const auto& [name, value] : interview_.subject.options) {
      const Option* option = interview_.loss->signature.find_option(name);
      for (const OptionValue& told : option ? far_values(*option, value) : std::vector{value}) {
        if (places_.size() > 1) ask_told(name, told);
      }
    }
    auto& likenesses = interview_.likenesses;
    const Candidate front = likenesses[places_.front()].candidate;
    std::vector<OptionValues> others;
    for (const std::size_t place : std::span(places_).subspan(1)) {
      if (apart_[place]) others.push_back(difference(front, likenesses[place].candidate));
    }
    std::swap(likenesses.front(), likenesses[places_.front()]);
    move_bounds();
    return others;
  }

 private:
  void ask_all(std::vector<Case> cases) {
    for (Case& c : cases) {
      c.spec.reduction = interview_.best().candidate.reduction;
      auto probe = ask(function_, interview_, std::move(c));
      if (probe && probe->answer) probes_.push_back(std::move(*probe));
    }
  }

  /// On how many cases a candidate is not what was answered.
  std::ptrdiff_t unlike(const Candidate& candidate) const {
    return std::ranges::count_if(
        probes_, [&](const Probe& probe) { return !interview_.formula(probe, candidate).equal; });
  }

  /// Those that explain the most, in the order of the list, and how many cases they do not.
  void find_best() {
    std::vector<std::ptrdiff_t> counted;
    for (const Likeness& likeness : interview_.likenesses) {
      counted.push_back(unlike(likeness.candidate));
    }
    least_ = *std::ranges::min_element(counted);
    places_.clear();
    for (std::size_t i = 0; i < counted.size(); ++i) {
      if (counted[i] == least_) places_.push_back(i);
    }
  }

  std::vector<Candidate> tied() const {
    std::vector<Candidate> candidates;
    for (const std::size_t place : places_) {
      candidates.push_back(interview_.likenesses[place].candidate);
    }
    return candidates;
  }

  void ask_what_tells(TellingCases telling) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      apart_[places_[i]] = apart_[places_[i]] || telling.apart[i];
    }
    if (telling.cases.empty()) return;
    ask_all(std::move(telling.cases));
    find_best();
  }

  /// Where the option is told something else: an end of its range may be a formula by itself.
  void ask_told(const std::string& option, const OptionValue& value) {
    std::vector<Case> cases = right_cases(interview_);
    for (Case& c : cases) tell(interview_, c, option, value);
    const std::vector<Candidate> candidates = tied();
    const auto known = static_cast<std::ptrdiff_t>(probes_.size());
    ask_what_tells(cases_that_tell(interview_.formula, candidates, cases));
    // What it is none of them at says nothing of which it is.
    const auto is_none = [&](const Probe& probe) {
      return std::ranges::none_of(candidates, [&](const Candidate& candidate) {
        return interview_.formula(probe, candidate).equal;
      });
    };
    probes_.erase(std::remove_if(probes_.begin() + known, probes_.end(), is_none), probes_.end());
    find_best();
  }

  /// Looks for bounds that are none of the likely ones: where they stand only edges tell.
  void move_bounds() {
    Candidate& candidate = interview_.likenesses.front().candidate;
    for (const std::string& name : interview_.untold()) {
      const Option& option = *interview_.loss->signature.find_option(name);
      if (least_ == 0 || option.kind != Option::Kind::real) continue;
      Candidate moved = candidate;
      const auto distance = [&](const OptionValue& value) {
        set_value(moved.options, name, value);
        double sum = 0.0;
        for (const Probe& probe : probes_) sum += interview_.formula(probe, moved).distance;
        return sum;
      };
      const Nearest rough = nearest_value(option, *find_value(candidate.options, name), distance);
      distance(polished(option, rough, distance).value);
      const Likeness likeness = liken(interview_, moved.options, moved.reduction);
      const auto left = unlike(moved);
      if (likeness.whole.empty() || left >= least_) continue;
      candidate = moved;
      least_ = left;
    }
  }

  Function& function_;
  Interview& interview_;
  std::vector<Probe> probes_;
  std::vector<std::size_t> places_;  ///< of the best among the likenesses
  std::vector<bool> apart_;          ///< of each likeness, whether a case told it from the best
  std::ptrdiff_t least_ = 0;
};

}  // namespace

std::vector<OptionValues> settle_ties(Function& function, Interview& interview) {
  return Ties(function, interview).settled();
}

}  // namespace lossgate::ci
