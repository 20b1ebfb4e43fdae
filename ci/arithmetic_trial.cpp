// SPDX-License-Identifier: Apache-2.0
#include "ci/arithmetic_trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "ci/asked_under.h"
#include "ci/declarations.h"
#include "ci/observations.h"
#include "fuzz/draw_case.h"
#include "properties/property.h"

namespace lossgate::ci {
namespace {

using impl::DeclaredArithmetic;
using impl::DeclaredSum;

constexpr std::uint64_t kCases = 16;
constexpr std::uint64_t kSeed = 40;
/// A declaration that is wider by less is left as it is.
constexpr double kMuchNarrower = 8.0;

/// What a gate's benign cases are like.
std::vector<Case> benign_cases(const LossSignature& signature, Dtype stored) {
  std::vector<Case> cases;
  for (std::uint64_t i = 0; i < kCases; ++i) {
    fuzz::Choices choices =
        fuzz::case_choices(kSeed, signature.id, stored, fuzz::Profile::benign, i);
    cases.push_back(fuzz::draw_case(signature, stored, fuzz::Profile::benign, choices));
  }
  return cases;
}

struct Narrowest {
  std::optional<DeclaredArithmetic> found, hiding;
  Fit fit;  ///< of what is found
};

/// The narrowest declaration whose bound holds every value as it is: T is for what bounds of first
/// order leave out, which is little on benign cases. And the first that would hold them, but hides
/// what is disputed.
Narrowest narrowest(Observations& observations, const DeclaredArithmetic& declared, bool fits,
                    Dtype stored) {
  Narrowest best;
  std::optional<bool> insensitive;
  for (const DeclaredArithmetic& candidate : candidates(declared, fits, stored)) {
    const Fit next = observations.fit(candidate);
    if (next.ratio > 1.0 || (best.found && next.log_bound >= best.fit.log_bound)) continue;
    if (narrows(candidate, stored)) {
      if (!insensitive) insensitive = observations.insensitive();
      if (!*insensitive) continue;
    }
    if (next.hides) {
      if (!best.hiding) best.hiding = candidate;
      continue;
    }
    best.found = candidate;
    best.fit = next;
  }
  return best;
}

/// Wide fields that keep their digits alone, where some are rounded to the others' format at once.
std::optional<Proposal> fewer_wide_fields(Observations& observations, const impl::Subject& subject,
                                          Dtype stored) {
  std::vector<std::string> rounded, kept;
  for (const std::string& field : subject.wide) {
    if (observations.rounds(field)) {
      rounded.push_back(field);
    } else {
      kept.push_back('"' + field + '"');
    }
  }
  if (rounded.empty()) return std::nullopt;
  return Proposal{kept.empty() ? "[[subject]] without wide"
                               : fmt::format("[[subject]] wide = [{}]", fmt::join(kept, ", ")),
                  fmt::format("its callers have {} in {}: it rounds that to it first",
                              fmt::join(rounded, ", "), name(stored)),
                  "",
                  {}};
}

/// What becomes of the bounds of one fit under another.
std::string narrowing(const Fit& from, const Fit& to) {
  const double bounded = from.unbounded - to.unbounded;
  if (bounded > 0.0) return fmt::format("{:.2g} % more of the values have a bound", 100 * bounded);
  const double narrower = std::exp2(from.log_bound - to.log_bound);
  return fmt::format("the bounds are {:.2g} times as narrow", narrower);
}

/// As it stands in a file: one line of the table, or the table in one line.
std::string declaration_of(const DeclaredArithmetic& arithmetic) {
  const auto lines = impl::toml_lines(arithmetic);
  if (lines.empty()) return "[subject.arithmetic] without a line";
  if (lines.size() == 1) return "[subject.arithmetic] " + lines.front();
  return fmt::format("[[subject]] arithmetic = {{ {} }}", fmt::join(lines, ", "));
}

Proposal declaring(const DeclaredArithmetic& arithmetic, const std::string& worth) {
  return {declaration_of(arithmetic), "it computes so; " + worth, "", {}};
}

/// Whether a trial's cases, of which most are hostile, are all what the formula gives then.
bool agrees_under(const Brought& brought, const DeclaredArithmetic& arithmetic) {
  impl::Subject subject = brought.subject;
  subject.arithmetic = arithmetic;
  return always_holds(brought, subject, *properties::find_property("reference_agreement"));
}

}  // namespace

bool ArithmeticTrial::fits() const { return ratio <= reference::kThreshold; }

ArithmeticTrial try_arithmetic(const Brought& brought, Dtype dtype) {
  Observations observations(brought, dtype, benign_cases(brought.loss.signature, dtype));
  const DeclaredArithmetic& declared = brought.subject.arithmetic;
  const Fit as_declared = observations.fit(declared);
  ArithmeticTrial trial{.dtype = dtype, .cases = observations.size(), .ratio = as_declared.ratio};
  if (trial.cases == 0) return trial;
  if (!trial.fits()) {
    observations.dispute(declared);
    if (const auto format = observations.rounds_fields_to()) {
      trial.proposal = {fmt::format("[[subject]] dtypes = [\"{}\"]", name(*format)),
                        "its callers have no wider fields: it rounds them to that first",
                        "",
                        {}};
      return trial;
    }
    if ((trial.proposal = fewer_wide_fields(observations, brought.subject, dtype))) return trial;
  }
  const auto [found, hiding, fit] = narrowest(observations, declared, trial.fits(), dtype);
  if (!found) {
    if (hiding) trial.hiding = declaration_of(*hiding);
    return trial;
  }
  const double narrower = as_declared.log_bound - fit.log_bound;
  if (trial.fits() && narrower < std::log2(kMuchNarrower)) return trial;
  trial.declaration = found;
  trial.worth = trial.fits() ? fmt::format("then {}", narrowing(as_declared, fit))
                             : fmt::format("then the worst error is {:.3g}", fit.ratio);
  trial.proposal = declaring(*found, trial.worth);
  return trial;
}

std::vector<std::string> failing_under(const Brought& brought,
                                       const DeclaredArithmetic& arithmetic) {
  impl::Subject subject = brought.subject;
  subject.arithmetic = arithmetic;
  const AskedUnder asked(brought, subject);
  const Already already = seen_under({brought, brought.subject});
  for (const Dtype dtype : brought.dtypes) {
    Progress progress(kTrials, 0);
    const Failures found = failures(asked, dtype, progress, kTrialSeed, Breadth::of_the_case);
    progress.finish();
    auto kinds = new_kinds(asked, found, already);
    if (!kinds.empty()) return kinds;
  }
  return {};
}

bool explains(const Brought& brought, Dtype dtype, std::span<const Case> failing,
              const DeclaredArithmetic& arithmetic) {
  Observations observations(brought, dtype, {failing.begin(), failing.end()});
  observations.dispute(brought.subject.arithmetic);
  return observations.fit(arithmetic).holds();
}

std::optional<Proposal> try_concession(const Brought& brought, Dtype dtype,
                                       std::span<const Case> failing) {
  const DeclaredArithmetic& declared = brought.subject.arithmetic;
  if (brought.loss.advice) return std::nullopt;
  Observations observations(brought, dtype, {failing.begin(), failing.end()});
  if (observations.fit(declared).holds()) return std::nullopt;
  observations.dispute(declared);
  DeclaredArithmetic other = declared;
  for (const DeclaredSum& sum : declared.sum ? std::vector<DeclaredSum>() : other_orders()) {
    other.sum = sum;
    const Fit fit = observations.fit(other);
    if (fit.ratio <= 1.0 && !fit.hides) {  // as it is, as in narrowest()
      return declaring(other, fmt::format("then the worst error is {:.3g}", fit.ratio));
    }
  }
  other = declared;
  for (const double slope : {1.0, 2.0}) {
    if (slope <= declared.exp_slope) continue;
    other.exp_slope = slope;
    const Fit fit = observations.fit(other);
    if (fit.holds() && agrees_under(brought, other)) {
      return declaring(other, fmt::format("then the worst error is {:.3g}", fit.ratio));
    }
  }
  return std::nullopt;
}

std::vector<ArithmeticTrial> try_arithmetic(const Brought& brought) {
  std::vector<ArithmeticTrial> trials;
  if (brought.loss.advice) return trials;  // its bounds are none
  for (const Dtype dtype : brought.dtypes) trials.push_back(try_arithmetic(brought, dtype));
  return trials;
}

}  // namespace lossgate::ci
