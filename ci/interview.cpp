// SPDX-License-Identifier: Apache-2.0
#include "ci/interview.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ci/candidates.h"
#include "ci/telling_cases.h"
#include "impl/implementation.h"

namespace lossgate::ci {
namespace {

/// Fewer answers prove nothing.
constexpr int kFewest = 4;
/// A candidate that has nothing in common with so many answers is not compared further.
constexpr int kHopeless = 3;

double positions_per_token(const LossSignature& signature, const Case& c) {
  const auto valid = valid_positions(signature, c);
  return static_cast<double>(valid.size()) /
         static_cast<double>(std::max<std::ptrdiff_t>(1, std::ranges::count(valid, true)));
}

/// One candidate under one reduction.
Likeness liken_answers(const Formula& formula, const std::vector<Probe>& probes,
                       const Candidate& candidate, bool thorough) {
  Likeness likeness{.candidate = candidate};
  std::vector<double> factors, by_positions;
  double distance = 0.0;
  int compared = 0;
  likeness.cases = static_cast<int>(probes.size());
  for (const Probe& probe : probes) {
    const Closeness closeness = formula(probe, candidate);
    ++compared;
    likeness.equal += closeness.equal;
    distance += closeness.distance;
    factors.push_back(closeness.factor);
    by_positions.push_back(closeness.factor * positions_per_token(formula.signature(), probe.c));
    const bool alike = likeness.equal > 0 || distance < kRounding * compared ||
                       constant(factors) != 0.0 || constant(by_positions) != 0.0;
    if (!thorough && !alike && compared == kHopeless) break;
  }
  likeness.distance = compared ? distance / compared : 1.0;
  if (compared < likeness.cases) return likeness;
  if (likeness.equal == likeness.cases && likeness.cases >= kFewest) {
    likeness.whole = {candidate.reduction};
  }
  likeness.factor = constant(factors);
  likeness.by_positions = likeness.factor == 0.0 && constant(by_positions) != 0.0;
  if (likeness.by_positions) likeness.factor = constant(by_positions);
  return likeness;
}

/// One factor on all cases says more than equality on some: on two sequences that are the same,
/// twice a mean is a sum.
auto rank(const Likeness& a) {
  return std::tuple(-static_cast<int>(a.whole.size()), a.factor == 0.0, -a.equal,
                    a.whole.empty() ? a.distance : 0.0, a.place);
}

/// Under every reduction that it was told: the one that fits best, and all that fit.
Likeness liken_told(const Interview& interview, const OptionValues& untold) {
  std::optional<Likeness> best;
  std::vector<Reduction> whole;
  for (const Answers& answers : interview.answers) {
    Likeness one = liken_answers(interview.formula, answers.probes,
                                 {.reduction = answers.reduction, .options = untold}, false);
    whole.insert(whole.end(), one.whole.begin(), one.whole.end());
    if (!best || rank(one) < rank(*best)) best = std::move(one);
  }
  best->whole = std::move(whole);
  return *best;
}

/// Whether a field that is needed does not reach the function.
bool lacks(const Interview& interview, const Field& field) {
  // Of terms the mask is the trainer's, of outputs what weighs them.
  const bool reduced =
      (interview.subject.per_token && field.role == Role::mask) ||
      (interview.subject.weighed_outputs && impl::weighed_output(interview.loss->signature, field));
  return !field.optional && !takes(interview.greeting, field) && !reduced;
}

/// Whether the formula hears of the field where its coefficient, if any, stands there, and all
/// other options leave as much away as they can.
bool reads(const Interview& interview, const Field& field, const OptionValue& coefficient) {
  const LossSignature& loss = interview.loss->signature;
  Candidate candidate{.reduction = reductions_of(loss).front(), .options = {}};
  for (const Option& option : loss.options) {
    candidate.options.emplace_back(option.name, option.name == loss.coefficient ? coefficient
                                                : option.nullable ? OptionValue(None{})
                                                                  : option.standard);
  }
  return std::ranges::any_of(interview.answers.front().probes, [&](const Probe& probe) {
    Case moved = probe.c;
    Tensor& tensor = moved.batch.at(field.name);
    if (!is_float(tensor.dtype)) return true;
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, tensor.at(i) * 0.5 - 0.25);
    return Formula::differ(interview.formula.values(probe.c, candidate),
                           interview.formula.values(moved, candidate));
  });
}

/// Nobody computes what hangs on numbers that he is not given.
bool lacks_other_terms(const Interview& interview) {
  const LossSignature& loss = interview.loss->signature;
  const Option* scale = loss.find_option(loss.coefficient);
  if (!scale || scale->low > 0.0 || interview.answered == 0) return false;
  return std::ranges::any_of(loss.fields, [&](const Field& field) {
    return lacks(interview, field) && !reads(interview, field, 0.0) &&
           reads(interview, field, scale->high);
  });
}

}  // namespace

double constant(const std::vector<double>& factors) {
  if (factors.empty() || !std::isfinite(factors[0])) return 0.0;
  const bool all = std::ranges::all_of(factors, [&](double factor) {
    return std::fabs(factor - factors[0]) <= 1e-4 * std::fabs(factors[0]);
  });
  return all ? factors[0] : 0.0;
}

std::vector<std::string> Interview::untold() const {
  std::vector<std::string> names;
  for (const Option& option : loss->signature.options) {
    const auto& told = greeting.options;
    const bool tied = std::ranges::any_of(
        subject.tied, [&](const auto& pair) { return pair.first == option.name; });
    if (tied || std::ranges::find(told, option.name) != told.end()) continue;
    names.push_back(option.name);
  }
  return names;
}

std::vector<std::string> Interview::open(std::vector<std::string> options) const {
  const std::string& coefficient = loss->signature.coefficient;
  if (bare && !find_value(subject.options, coefficient)) std::erase(options, coefficient);
  return options;
}

const std::vector<Probe>& Interview::probes(Reduction reduction) const {
  const auto told = std::ranges::find(answers, reduction, &Answers::reduction);
  return told == answers.end() ? answers.front().probes : told->probes;
}

std::vector<Likeness> compare(const Interview& interview) {
  std::vector<Likeness> likenesses;
  if (interview.answered == 0) return likenesses;
  auto combined = combinations(interview.loss->signature, interview.untold());
  std::erase_if(combined, [&](const OptionValues& values) {
    const OptionValue* scale = find_value(values, interview.loss->signature.coefficient);
    return interview.bare && scale && *scale != OptionValue(0.0);
  });
  for (const OptionValues& untold : combined) {
    if (interview.greeting.reduction) {
      likenesses.push_back(liken_told(interview, untold));
      continue;
    }
    for (const Reduction reduction : reductions_of(interview.loss->signature)) {
      likenesses.push_back(liken_answers(interview.formula, interview.answers.front().probes,
                                         {.reduction = reduction, .options = untold}, false));
    }
  }
  int place = 0;
  for (Likeness& likeness : likenesses) likeness.place = place++;
  std::ranges::sort(likenesses, {}, rank);
  return likenesses;
}

std::optional<Probe> ask(Function& function, const Interview& interview, Case c) {
  const LossSignature& signature = interview.formula.signature();
  Probe probe{.c = std::move(c), .answer = {}, .refusal = {}};
  const LossResult result = function.answer(interview.subject, signature, probe.c);
  if (result.refusal && result.refusal->argument == impl::kNotComputed) return std::nullopt;
  if (result.refusal) {
    const bool no_result = result.refusal->argument == impl::kNoResult;
    probe.refusal = (no_result ? "" : "it raised ") + result.refusal->message;
    return probe;
  }
  Values& values = probe.answer.emplace();
  for (const OutputInfo& output : outputs_of(signature, probe.c)) {
    const Tensor& tensor = *result.find(output.name);
    std::vector<double>& entries = values.emplace_back();
    for (std::int64_t i = 0; i < tensor.size(); ++i) entries.push_back(tensor.at(i));
  }
  return probe;
}

Likeness liken(const Interview& interview, const OptionValues& untold, Reduction reduction) {
  return liken_answers(interview.formula, interview.probes(reduction),
                       {.reduction = reduction, .options = untold}, true);
}

Interview interview(Function& function, const reference::Loss& loss, impl::Subject subject,
                    Dtype dtype) {
  subject.loss = loss.signature.id;
  impl::Greeting greeting = function.bind(subject, loss.signature);
  heed(greeting, loss.signature, subject);
  for (const Option& option : loss.signature.options) {
    const bool told = std::ranges::find(greeting.options, option.name) != greeting.options.end();
    if (told && !find_value(subject.options, option.name)) {
      subject.options.emplace_back(option.name, option.standard);
    }
  }
  Interview result{.loss = &loss,
                   .subject = subject,
                   .greeting = std::move(greeting),
                   .formula = Formula(loss, plain_signature(loss, subject, dtype), dtype),
                   .answers = {},
                   .likenesses = {}};
  const auto cases = telling_cases(loss, result.formula, subject.options);
  for (const Reduction reduction : reductions_of(loss.signature)) {
    Answers answers{.reduction = reduction, .probes = {}};
    bool expressed = false;
    for (Case c : cases) {
      c.spec.reduction = reduction;
      std::optional<Probe> probe = ask(function, result, std::move(c));
      result.uncomputed += !probe;
      if (!probe) continue;
      if (!probe->answer) result.refusal = probe->refusal;
      result.answered += probe->answer.has_value();
      expressed = expressed || probe->answer;
      answers.probes.push_back(std::move(*probe));
    }
    if (expressed) result.answers.push_back(std::move(answers));
    if (!result.greeting.reduction) break;
  }
  result.bare = lacks_other_terms(result);
  result.likenesses = compare(result);
  return result;
}

std::vector<std::string> missing_fields(const Interview& interview) {
  std::vector<std::string> missing;
  for (const Field& field : interview.loss->signature.fields) {
    if (lacks(interview, field) && reads(interview, field, 0.0)) missing.push_back(field.name);
  }
  return missing;
}

}  // namespace lossgate::ci
