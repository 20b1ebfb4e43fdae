// SPDX-License-Identifier: Apache-2.0
#include "ci/recognition.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "ci/candidates.h"
#include "ci/elsewhere.h"
#include "ci/exchange.h"
#include "ci/explanation.h"
#include "ci/scale_recognition.h"
#include "ci/settling.h"
#include "ci/solution.h"
#include "ci/ties.h"
#include "ci/ways_to_ask.h"
#include "impl/external/process.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

/// In f64, where a slip in the formula stands far above rounding. A function that does not take it,
/// or rounds to f32 inside, is asked in f32.
Interview in_its_format(Function& function, const reference::Loss& loss,
                        const impl::Subject& subject) {
  Interview wide = interview(function, loss, subject, Dtype::f64);
  std::optional<Interview> narrow;
  const auto rounds = [&] {
    return !wide.whole() && (wide.answered == 0 || wide.best().distance < kRounding);
  };
  if (rounds()) narrow = interview(function, loss, subject, Dtype::f32);
  if (narrow && narrow->whole()) {
    solve_untold(*narrow);
    return *std::move(narrow);
  }
  solve_untold(wide);
  if (!rounds()) return wide;
  if (!narrow) narrow = interview(function, loss, subject, Dtype::f32);
  solve_untold(*narrow);
  return narrow->whole() || wide.answered == 0 ? *std::move(narrow) : std::move(wide);
}

/// The share of answers that are the loss's; of ways that have all, how few cases are not computed.
auto merit(const Interview& interview) {
  const int left_out = interview.whole() ? -interview.uncomputed : 0;
  if (interview.likenesses.empty()) return std::tuple(interview.answered > 0, false, 0.0, left_out);
  const Likeness& best = interview.best();
  const double share = static_cast<double>(best.equal) / std::max(best.cases, 1);
  return std::tuple(true, interview.whole(), share, left_out);
}

/// Whether it is asked with one number for each sequence, at all of its positions: what takes
/// another position's for its own is right there.
bool expands(const impl::Subject& subject) {
  return std::ranges::any_of(subject.arguments, [](const auto& argument) {
    return impl::is_converted(argument.second, impl::kExpanded);
  });
}

/// Where a function was asked in several ways: the best, and what explains its answers where they
/// are not the loss's.
struct Found {
  Interview best;
  std::optional<Explanation> explanation = {};
};

/// From one way to the next as long as more answers are the loss's. What explains them is looked
/// for once in each round, and last but for what asks less.
Found in_some_way(Function& function, Interview first) {
  Found found{std::move(first)};
  for (bool better = true; better && !found.best.complete();) {
    better = false;
    const Interview asked = found.best;
    const auto complete_in = [&](const std::vector<impl::Subject>& ways) {
      for (const impl::Subject& way : ways) {
        try {
          Interview other = in_its_format(function, *asked.loss, way);
          if (merit(other) <= merit(found.best)) continue;
          if (expands(way) && !other.whole()) continue;  // it explains nothing
          found.best = std::move(other);
          better = true;
          if (found.best.complete()) return true;
        } catch (const impl::SubjectError&) {  // it cannot be asked in this way
        } catch (const impl::ProcessEnded&) {
        } catch (const impl::ProcessHung&) {
        }
      }
      return false;
    };
    if (complete_in(other_ways(asked))) break;
    std::optional<Explanation> explanation = explain(asked);
    if (complete_in(explained_ways(asked, explanation))) break;
    if (complete_in(narrower_ways(asked))) break;
    if (!better) found.explanation = std::move(explanation);
  }
  return found;
}

void say_what_differs(const Found& found, Recognition& result) {
  const auto& [interview, explanation] = found;
  if (!interview.refusal.empty()) result.remarks.push_back(interview.refusal);
  if (!explanation) return;
  result.remarks.push_back(explanation->text);
  result.likeness.candidate = explanation->candidate;
  std::erase_if(result.likeness.candidate.options, [&](const auto& option) {
    return find_value(found.best.subject.options, option.first) != nullptr;
  });
}

/// What none of its reductions reads is no part of what it is, nor of what may be wrong with it.
void leave_out_unread(const std::vector<Reduction>& reductions, Recognition& result) {
  std::erase_if(result.likeness.candidate.options, [&](const auto& option) {
    return !is_read(result.loss->signature, reductions, option.first);
  });
}

void say_where_it_holds(const Interview& interview, Recognition& result) {
  for (const Field& field : interview.loss->signature.fields) {
    if (!field.optional || takes(interview.greeting, field)) continue;
    result.remarks.push_back(
        field.stand_in.empty()
            ? fmt::format("right only where there is no {}", field.name)
            : fmt::format("right only where {} is {}", field.name, impl::in_place_of(field)));
  }
  for (const auto& [parameter, source] : result.subject.arguments) {
    if (!impl::is_converted(source, impl::kExpanded)) continue;
    result.remarks.push_back(
        fmt::format("right only where {} is one number for each sequence", parameter));
  }
  for (const auto& [axis, extent] : result.subject.axes) {
    result.remarks.push_back(fmt::format("right only where {} is {}", name(axis), extent));
  }
  if (!result.subject.contract.uneven_groups) {
    result.remarks.push_back("right only where groups are as large as each other, side by side");
  }
  if (!result.subject.contract.scattered_mask) {
    result.remarks.push_back("right only where the positions of a sequence that count come first");
  }
  if (!result.subject.contract.masked_outputs) {
    result.remarks.push_back("right only where nobody reads what it returns at masked positions");
  }
  for (const Answers& answers : interview.answers) {
    const auto& whole = interview.best().whole;
    const bool right = std::ranges::find(whole, answers.reduction) != whole.end();
    if (right || !interview.greeting.reduction) continue;
    result.remarks.push_back(fmt::format("another formula under {}", name(answers.reduction)));
  }
}

/// What is equal on as many cases as the nearest with numbers that nobody would wonder at, usual
/// ones and ends: where none explains the answers, one that comes a little nearer explains no more.
Likeness plainest(const Interview& interview) {
  Likeness nearest = interview.best();
  if (nearest.factor != 0.0 || !nearest.whole.empty()) return nearest;
  for (const auto& [name, value] : OptionValues(nearest.candidate.options)) {
    const Option& option = *interview.loss->signature.find_option(name);
    std::vector<OptionValue> plain = usual_values(interview.loss->signature, option);
    if (option.kind == Option::Kind::real) plain.insert(plain.end(), {option.low, option.high});
    if (std::ranges::find(plain, value) != plain.end()) continue;
    std::optional<Likeness> best;
    for (const OptionValue& other : plain) {
      OptionValues values = nearest.candidate.options;
      set_value(values, name, other);
      Likeness moved = liken(interview, values, nearest.candidate.reduction);
      if (moved.equal < nearest.equal || (best && best->distance <= moved.distance)) continue;
      best = std::move(moved);
    }
    if (best) nearest = *std::move(best);
  }
  return nearest;
}

/// Whether it raises where tensors are views of other memory, what it computes where each lies in
/// one piece, as `.view()` does.
bool wants_contiguous(Function& function, const Interview& interview) {
  const auto& probes = interview.answers.front().probes;
  const auto answered = std::ranges::find_if(probes, [](const Probe& p) { return !!p.answer; });
  return std::ranges::any_of(kAllLayouts, [&](Layout layout) {
    if (layout == Layout::contiguous || answered == probes.end()) return false;
    Case c = answered->c;
    c.layout = layout;
    const std::optional<Probe> probe = ask(function, interview, std::move(c));
    return probe && !probe->answer;
  });
}

/// What a gate will never ask, where it may be meant so; what is not is let go of, and it is asked.
void say_what_else_it_is_told(Function& function, const Interview& interview, Recognition& result) {
  std::vector<std::string> remarks;
  for (const std::string& name : interview.greeting.options) {
    const OptionValue* kept = find_value(interview.subject.options, name);
    if (!kept) continue;
    const Option& option = *interview.loss->signature.find_option(name);
    const Elsewhere there = elsewhere(function, interview, option);
    const bool by_itself = there.other || there.raises;  // else beside other options
    result.remarks.push_back(fmt::format("right only where {} is {}", name,
                                         right_at(*kept, by_itself ? there : Elsewhere{})));
    if (!there.fault.empty()) {
      result.faults.push_back(there.fault);
      result.let_go.emplace_back(name, *kept);
      std::erase_if(result.subject.options, [&](const auto& pair) { return pair.first == name; });
    } else if (there.other &&
               (there.other->own_default || report::option_text(*kept) != impl::kAnyNumber)) {
      const auto& [value, own_default, factor] = *there.other;
      remarks.push_back(fmt::format(
          "{}: at {}{} it is {}, and will not be asked there", name,
          own_default ? "its own default of " : "", report::option_text(value),
          factor == 0.0 ? "another formula" : fmt::format("{:.6g} times the formula", factor)));
    }
  }
  result.remarks.insert(result.remarks.end(), remarks.begin(), remarks.end());
}

/// Two of which one has to stay: that is for whoever knows where they are called.
void say_what_could_stay(Recognition& result) {
  std::erase_if(result.choices, [&](const Choice& choice) {
    return !find_value(result.subject.options, choice.stays);
  });
  for (const auto& [stays, other, value] : result.choices) {
    result.remarks.push_back(
        fmt::format("{0} is asked at all of its values where {1} = {2} stands in its place: a "
                    "second subject with that line asks both",
                    stays, other, report::option_text(value)));
  }
}

Recognition recognition_of(Function& function, Found found, bool thorough) {
  Interview& best = found.best;
  const reference::Loss& loss = *best.loss;
  Recognition result{.loss = &loss,
                     .greeting = best.greeting,
                     .subject = best.subject,
                     .likeness = {},
                     .remarks = {},
                     .refusal = best.refusal};
  if (best.likenesses.empty()) return result;
  const auto missing = missing_fields(best);
  for (const std::string& field : missing) {
    result.remarks.push_back("it does not take " + field);
  }
  if (!best.whole() || !missing.empty()) {
    result.likeness = plainest(best);
    if (best.whole()) result.likeness.factor = 0.0;  // it only looks like it
    if (thorough) say_what_differs(found, result);
    leave_out_unread({result.likeness.candidate.reduction}, result);
    return result;
  }
  function.bind(best.subject, loss.signature);  // another way may have been asked last
  result.equals = settle_ties(function, best);
  result.choices = free_told_options(function, best);
  result.faults = free_exchanged_options(function, best);
  const std::string scaled_by = free_scale(function, best);
  result.subject = best.subject;
  result.subject.scaled_by = scaled_by;
  if (!scaled_by.empty()) result.remarks.push_back("returns " + scaled_by + "^2 times the formula");
  result.subject.reductions = best.best().whole;
  result.subject.contract.empty_rows = empty_rows_of(function, best);
  result.likeness = best.best();
  leave_out_unread(result.subject.reductions, result);
  say_what_else_it_is_told(function, best, result);
  say_what_could_stay(result);
  say_where_it_holds(best, result);
  if (wants_contiguous(function, best)) {
    result.subject.contract.non_contiguous = false;
    result.remarks.push_back("raises where a tensor is a view of other memory: will not be asked");
  }
  for (const auto& [option, value] : result.likeness.candidate.options) {
    set_value(result.subject.options, option, value);
  }
  return result;
}

}  // namespace

Recognition recognise(Function& function, const reference::Loss& loss, const impl::Subject& subject,
                      bool thorough) {
  Interview first = in_its_format(function, loss, subject);
  if (thorough) return recognition_of(function, in_some_way(function, std::move(first)), true);
  // What raised once may have raised for the first time alone.
  auto plainly = first.refusal.empty() ? std::make_shared<const Interview>(first) : nullptr;
  Recognition result = recognition_of(function, {std::move(first)}, false);
  if (!result.whole()) result.plainly = std::move(plainly);
  return result;
}

Recognition recognise_further(Function& function, const Recognition& plain) {
  return recognition_of(function, in_some_way(function, *plain.plainly), true);
}

}  // namespace lossgate::ci
