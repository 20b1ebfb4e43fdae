// SPDX-License-Identifier: Apache-2.0
#include "ci/proposal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "ci/variant.h"
#include "fuzz/draw_case.h"
#include "properties/behind_mask.h"
#include "properties/property.h"
#include "reference/spec/masked.h"

namespace lossgate::ci {
namespace {

using properties::CaseStudy;
using properties::Evaluation;
using properties::Property;

constexpr int kHostileCases = 64, kBenignCases = 8;
constexpr std::uint64_t kSeed = 30;
/// Failing cases of a kind on which a line is tried.
constexpr std::size_t kMostTried = 8;
constexpr std::string_view kDeterminism = "determinism";

/// The subject as it would be asked under some contract.
class Asked {
 public:
  Asked(const Brought& brought, const impl::Subject& subject) : loss_(brought.loss) {
    loss_.signature = impl::narrowed(whole_signature(subject), subject);
    implementation_ =
        guarded(impl::brought_implementation(subject, loss_.signature, brought.session));
  }

  const reference::Loss& loss() const { return loss_; }
  const impl::Implementation& implementation() const { return implementation_; }

  /// Whether the property is still violated, once callers leave at masked positions what they
  /// promise here. What they never ask for is not.
  bool fails(const Property& property, const Case& c) const {
    const CaseStudy given(loss_, c);
    const auto may_not_stand = [](const Field& field, double value) {
      return !field.one_per_sequence && !keeps_to(field.masked, field.quantity, value);
    };
    const Case kept = properties::zeroed_behind_mask(given, c, may_not_stand).value_or(c);
    if (!keeps_to_contract(loss_.signature, kept) || implementation_.unsupported(kept)) {
      return false;
    }
    CaseStudy study(loss_, kept);
    Evaluation evaluation(study, implementation_);
    return property.check(evaluation).violation.has_value();
  }

 private:
  reference::Loss loss_;
  impl::Implementation implementation_;
};

/// Violations of one property for one cause.
struct Kind {
  const Property* property = nullptr;
  std::string cause;
  std::vector<Case> cases;

  std::string text() const {
    return fmt::format("{} ({} case{}{})", property->name, cases.size(),
                       cases.size() == 1 ? "" : "s", cause.empty() ? "" : ": " + cause);
  }
};

std::vector<const Property*> asked_properties() {
  std::vector<const Property*> list;
  for (const Property& property : properties::catalog()) {
    if (property.tier != properties::Tier::hardening) list.push_back(&property);
  }
  return list;
}

std::vector<Kind> failures(const Asked& asked, Dtype dtype, ContractTrial& trial) {
  const auto all = asked_properties();
  std::vector<Kind> kinds;
  for (int i = 0; i < kHostileCases + kBenignCases; ++i) {
    const auto profile = i < kHostileCases ? fuzz::Profile::hostile : fuzz::Profile::benign;
    const LossSignature& signature = asked.loss().signature;
    fuzz::Choices choices =
        fuzz::case_choices(kSeed, signature.id, dtype, profile, static_cast<std::uint64_t>(i));
    const Case c = fuzz::draw_case(signature, dtype, profile, choices);
    if (asked.implementation().unsupported(c)) continue;
    CaseStudy study(asked.loss(), c);
    Evaluation evaluation(study, asked.implementation());
    const auto outcomes = check_all(evaluation, all, true);
    trial.cases += 1;
    for (std::size_t p = 0; p < all.size(); ++p) {
      if (!outcomes[p].violation) continue;
      trial.failing[all[p]->name] += 1;
      const std::string& cause = outcomes[p].violation->cause;
      auto kind = std::ranges::find_if(kinds, [&](const Kind& known) {
        return known.property == all[p] && known.cause == cause;
      });
      if (kind == kinds.end()) kind = kinds.insert(kinds.end(), Kind{all[p], cause, {}});
      kind->cases.push_back(c);
    }
  }
  return kinds;
}

std::string word(Masked masked) {
  switch (masked) {
    case Masked::anything:
      return "\"any\"";
    case Masked::minus_infinity:
      return "\"-inf\"";
    case Masked::finite:
      return "\"finite\"";
    case Masked::ordinary:
      return "\"ordinary\"";
    case Masked::zero:
      return "0";
  }
  return "";
}

class Trial {
 public:
  Trial(const Brought& brought, const Kind& kind) : brought_(brought), kind_(kind) {}

  std::optional<Proposal> explain() const {
    const auto& declared = brought_.subject;
    if (kind_.property->name == kDeterminism) {
      return flag(&impl::Contract::deterministic, "deterministic",
                  "the same batch may give other bits");
    }
    if (!still_fails(declared)) return std::nullopt;  // it comes and goes by itself
    if (auto found = masked()) return found;
    if (auto found = empty()) return found;
    if (auto found = flag(&impl::Contract::infinite_valid, "infinite_valid",
                          "no caller has infinities at valid positions")) {
      return found;
    }
    if (auto found = flag(&impl::Contract::grad_modes, "grad_modes",
                          "callers ask for every gradient, right behind its forward")) {
      return found;
    }
    if (auto found = flag(&impl::Contract::refuses_invalid, "refuses_invalid",
                          "callers check labels and the like themselves")) {
      return found;
    }
    if (auto found = combination(&impl::Subject::micro_batches, "micro_batches")) return found;
    return combination(&impl::Subject::ranks, "ranks");
  }

 private:
  bool still_fails(const impl::Subject& subject) const {
    const Asked asked(brought_, subject);
    const std::size_t some = std::min(kind_.cases.size(), kMostTried);
    return std::any_of(kind_.cases.begin(), kind_.cases.begin() + static_cast<std::ptrdiff_t>(some),
                       [&](const Case& c) { return asked.fails(*kind_.property, c); });
  }

  /// Callers who leave less at masked positions: of as few fields as will do.
  std::optional<Proposal> masked() const {
    for (const Masked level :
         {Masked::minus_infinity, Masked::finite, Masked::ordinary, Masked::zero}) {
      impl::Subject subject = brought_.subject;
      std::vector<std::string> changed;
      for (const Field& field : brought_.loss.signature.fields) {
        if (!is_positional(field) || field.role == Role::mask || field.role == Role::label)
          continue;
        if (field.masked >= level) continue;
        subject.masked_of_field[field.name] = level;
        changed.push_back(field.name);
      }
      if (changed.empty() || still_fails(subject)) continue;
      for (const std::string& name : changed) {
        const Masked needed = std::exchange(subject.masked_of_field[name],
                                            brought_.loss.signature.find_field(name)->masked);
        if (still_fails(subject)) subject.masked_of_field[name] = needed;
      }
      return masked_line(subject, level);
    }
    return std::nullopt;
  }

  Proposal masked_line(const impl::Subject& subject, Masked level) const {
    std::string line = "default = " + word(subject.masked), names;
    for (const auto& [field, masked] : subject.masked_of_field) {
      if (masked != subject.masked) line += ", " + field + " = " + word(masked);
      if (masked == level && brought_.loss.signature.find_field(field)->masked != level) {
        names += (names.empty() ? "" : ", ") + field;
      }
    }
    const char* what = level == Masked::zero       ? "nothing but 0"
                       : level == Masked::ordinary ? "numbers of a healthy run"
                       : level == Masked::finite   ? "finite numbers"
                                                   : "finite numbers and -inf";
    return {"[subject.contract] masked = { " + line + " }",
            fmt::format("callers leave {} at masked positions of {}", what, names),
            "",
            {}};
  }

  /// What the function does with a batch in which nothing counts says which word it is.
  std::optional<Proposal> empty() const {
    if (brought_.subject.contract.empty != Empty::zero) return std::nullopt;
    const Asked declared(brought_, brought_.subject);
    CaseStudy study(declared.loss(), kind_.cases.front());
    const bool is_empty = !properties::anything_counts(study);
    if (!is_empty && !study.transformed(properties::kAllMasked)) return std::nullopt;
    Evaluation evaluation(study, declared.implementation());
    const LossResult& result =
        is_empty ? evaluation.actual() : evaluation.actual(properties::kAllMasked);
    const Tensor* loss = result.find("loss");
    const bool nan = !result.refusal && loss && std::isnan(loss->at(0));
    if (!result.refusal && !nan) return std::nullopt;
    impl::Subject subject = brought_.subject;
    subject.contract.empty = nan ? Empty::nan : Empty::error;
    if (still_fails(subject)) return std::nullopt;
    return Proposal{fmt::format("[subject.contract] empty = \"{}\"", nan ? "nan" : "error"),
                    nan ? "the trainer drops the NaN of a batch without a valid position"
                        : "the trainer never asks for a batch without a valid position",
                    nan ? "" : result.refusal->message,
                    {}};
  }

  std::optional<Proposal> flag(bool impl::Contract::*member, const char* name,
                               const char* right) const {
    impl::Subject subject = brought_.subject;
    if (!std::exchange(subject.contract.*member, false) || still_fails(subject))
      return std::nullopt;
    return Proposal{fmt::format("[subject.contract] {} = false", name), right, "", {}};
  }

  /// Another word for what the trainer does with parts is no contract, and as easily mistaken.
  std::optional<Proposal> combination(impl::Combination impl::Subject::*member,
                                      const char* name) const {
    using enum impl::Combination;
    if (kind_.property->name != "split_invariance") return std::nullopt;
    for (const auto& [value, text] : {std::pair(sum, "sum"), std::pair(mean, "mean"),
                                      std::pair(token_weighted, "token_weighted")}) {
      impl::Subject subject = brought_.subject;
      if (subject.*member == none || std::exchange(subject.*member, value) == value) continue;
      if (still_fails(subject)) continue;
      return Proposal{fmt::format("[[subject]] {} = \"{}\"", name, text),
                      "that is what the trainer does with their losses",
                      "",
                      {}};
    }
    return std::nullopt;
  }

  const Brought& brought_;
  const Kind& kind_;
};

void explain(const Brought& brought, const std::vector<Kind>& kinds, ContractTrial& trial) {
  // Of a function that gives other bits each time, nothing is shown by what vanishes.
  const bool repeatable = !trial.failing.contains(std::string(kDeterminism));
  for (const Kind& kind : kinds) {
    std::optional<Proposal> found;
    if (repeatable || kind.property->name == kDeterminism) found = Trial(brought, kind).explain();
    if (!found) {
      trial.unexplained.push_back(kind.text());
      continue;
    }
    auto known = std::ranges::find(trial.proposals, found->line, &Proposal::line);
    if (known == trial.proposals.end()) {
      known = trial.proposals.insert(trial.proposals.end(), std::move(*found));
    }
    known->relaxes.push_back(kind.text());
  }
}

}  // namespace

ContractTrial try_contract(const Brought& brought) {
  ContractTrial trial;
  try {
    const Asked asked(brought, brought.subject);
    explain(brought, failures(asked, brought.dtypes.front(), trial), trial);
  } catch (const ImplementationThrew& error) {
    trial.trouble = error.what();
  } catch (const impl::SubjectError& error) {
    trial.trouble = error.what();
  }
  return trial;
}

}  // namespace lossgate::ci
