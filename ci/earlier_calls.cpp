// SPDX-License-Identifier: Apache-2.0
#include "ci/earlier_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "ci/variant.h"
#include "properties/causes.h"

namespace lossgate::ci {
namespace {

using properties::Outcome;
using properties::Verdict;

/// How often a case is asked until it fails: it is a service, not the cause.
constexpr int kMostTimes = 64;
constexpr auto kMostTime = std::chrono::seconds(5);

/// Causes by which a number is another multiple of what it should be, or hangs on where its tensor
/// lies, by which a number is kept as well.
constexpr std::string_view kLookAlike[] = {"padding counted", "empty row counted",
                                           "wrong divisor",   "scaled twice",
                                           "option misread",  "strides ignored"};

/// Questions of a property that get a process each, which takes seconds.
constexpr int kMostStarts = 4;

struct Checked {
  Outcome outcome;
  int calls;
};

Checked checked(const reference::Loss& loss, const impl::Implementation& implementation,
                const properties::Property& property, const Case& c) {
  properties::CaseStudy study(loss, c);
  properties::Evaluation evaluation(study, implementation);
  evaluation.tells_bias = false;
  Outcome outcome = property.check(evaluation);
  return {std::move(outcome), evaluation.calls()};
}

/// A question that holds goes on to more calls than one that fails.
struct TooManyStarts {};

/// The same with every call the first of its process.
impl::Implementation one_process_a_call(const impl::Implementation& own,
                                        const std::function<impl::Implementation()>& start) {
  impl::Implementation apart = own;
  apart.evaluate = [&start, starts = std::make_shared<int>(0)](const LossSignature& signature,
                                                               const Case& c) {
    if (++*starts > kMostStarts) throw TooManyStarts();
    return start().evaluate(signature, c);
  };
  return apart;
}

bool holds_in_one_process_a_call(const reference::Loss& loss, const impl::Implementation& own,
                                 const std::function<impl::Implementation()>& start,
                                 const properties::Property& property, const Case& c) {
  try {
    const Checked apart = checked(loss, one_process_a_call(own, start), property, c);
    return apart.outcome.verdict == Verdict::held;
  } catch (const TooManyStarts&) {  // so it cannot be said
    return false;
  }
}

/// The time at which the case, asked over and over, fails, the first having held; 0: it does not.
int first_failure(const reference::Loss& loss, const impl::Implementation& own,
                  const properties::Property& property, const Case& c) {
  const auto begin = std::chrono::steady_clock::now();
  for (int time = 2; time <= kMostTimes; ++time) {
    if (std::chrono::steady_clock::now() - begin > kMostTime) return 0;
    if (checked(loss, own, property, c).outcome.violation) return time;
  }
  return 0;
}

}  // namespace

std::optional<impl::Implementation> in_new_process(const Selection& selection,
                                                   const impl::Implementation& subject,
                                                   std::function<void()> before) {
  const auto brought = std::ranges::find_if(selection.brought, [&](const auto& one) {  // guarded
    return one->implementation.loss == subject.loss && one->implementation.name == subject.name;
  });
  if (brought == selection.brought.end() || (*brought)->subject.entry.starts_with("fd:"))
    return std::nullopt;
  Brought own = **brought;
  own.session = std::make_shared<impl::Session>(own.subject, whole_signature(own.subject));
  impl::Implementation alone = redeclared(own, own.subject).implementation;
  alone.foresee = nullptr;  // asked what is asked, and in that order
  return guarded(alone, std::move(before));
}

bool may_need_earlier_calls(const properties::Property& property,
                            const properties::Diagnosis& diagnosis) {
  if (diagnosis.cause == kStateBetweenCalls) return false;  // it was seen already
  if (std::ranges::find(kLookAlike, diagnosis.cause) != std::end(kLookAlike)) return true;
  if (diagnosis.confidence >= properties::kSure) return false;
  // Whoever keeps something shows it in one answer, too, and of the questions that compare several
  // there are ten for each fault.
  if (property.precedence == properties::Precedence::formula) return true;
  const properties::Cause* cause = properties::find_cause(diagnosis.cause);
  return property.precedence == properties::Precedence::finite && cause && cause->symptom;
}

std::optional<EarlierCalls> needs_earlier_calls(const reference::Loss& loss,
                                                const impl::Implementation& subject,
                                                const std::function<impl::Implementation()>& start,
                                                const properties::Property& property, const Case& c,
                                                const std::string& cause) {
  const impl::Implementation own = start();
  const Checked alone = checked(loss, own, property, c);
  const bool holds_alone = alone.outcome.verdict == Verdict::held;
  if (!holds_alone) {
    if (!alone.outcome.violation || alone.calls < 2 || alone.calls > kMostStarts) {
      return std::nullopt;
    }
    if (!holds_in_one_process_a_call(loss, own, start, property, c)) return std::nullopt;
  }
  // What comes and goes by itself needs no call before it.
  const Outcome again = checked(loss, subject, property, c).outcome;
  if (!again.violation || again.violation->cause != cause) return std::nullopt;
  properties::Diagnosis state{kStateBetweenCalls, 0.95,
                              "each call by itself, in a new process, is right"};
  if (!holds_alone) return EarlierCalls{std::move(state), false};
  const int time = first_failure(loss, own, property, c);
  state.because = "where nothing was asked before it the case holds, as a replay of it does; " +
                  (time > 0 ? fmt::format("asked over and over it fails at time {}", time)
                            : "it takes other cases before it, as in the run that found it");
  return EarlierCalls{std::move(state), true};
}

}  // namespace lossgate::ci
