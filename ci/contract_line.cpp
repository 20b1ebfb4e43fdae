// SPDX-License-Identifier: Apache-2.0
#include "ci/contract_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ci/arithmetic_trial.h"
#include "ci/empty_trial.h"
#include "ci/even_trial.h"
#include "ci/largest_trial.h"
#include "ci/toml_text.h"
#include "ci/variant.h"
#include "properties/property.h"
#include "reference/spec/masked.h"

namespace lossgate::ci {
namespace {

/// Failing cases of a kind on which a line is tried.
constexpr std::size_t kMostTried = 8;

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

/// What callers may promise, in a word.
struct Flag {
  bool impl::Contract::*member;
  const char *name, *right;
};
constexpr Flag kFlags[] = {{&impl::Contract::infinite_valid, "infinite_valid",
                            "no caller has infinities at valid positions"},
                           {&impl::Contract::non_contiguous, "non_contiguous",
                            "callers hand over tensors that lie in memory in one piece"},
                           {&impl::Contract::uneven_groups, "uneven_groups",
                            "groups are as large as each other and lie side by side"},
                           {&impl::Contract::scattered_mask, "scattered_mask",
                            "callers pad on the right, and mask nothing within a sequence"},
                           {&impl::Contract::autocast, "autocast",
                            "callers are not inside torch.autocast when they call it"},
                           {&impl::Contract::grad_modes, "grad_modes",
                            "callers ask for every gradient, right behind its forward"},
                           {&impl::Contract::refuses_invalid, "refuses_invalid",
                            "callers check labels and the like themselves"}};

/// What would make all of these kinds go.
class Trial {
 public:
  Trial(const Brought& brought, std::span<const Failure> kinds)
      : brought_(brought), kinds_(kinds), kind_(kinds.front()) {}

  std::optional<Proposal> explain() const {
    const auto& declared = brought_.subject;
    if (kind_.property->name == kDeterminism) {
      return flag(&impl::Contract::deterministic, "deterministic",
                  "the same batch may give other bits");
    }
    if (!still_fails(declared)) return std::nullopt;  // it comes and goes by itself
    if (auto found = flag(&impl::Contract::masked_outputs, "masked_outputs",
                          "nobody reads what it returns at masked positions")) {
      return found;
    }
    if (auto found = masked()) return found;
    if (auto found = empty()) return found;
    if (auto found = empty_rows()) return found;
    for (const auto& [member, name, right] : kFlags) {
      if (auto found = flag(member, name, right)) return found;
    }
    if (auto found = largest()) return found;
    if (auto found = expanded()) return found;
    if (auto found = even_parts()) return found;
    if (auto found = combination(&impl::Subject::micro_batches, "micro_batches")) return found;
    if (auto found = combination(&impl::Subject::ranks, "ranks")) return found;
    return try_concession(brought_, brought_.dtypes.front(), some_cases(kind_));
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
      for (const std::string& name : changed) loosen(subject, name, level);
      return masked_line(subject);
    }
    return std::nullopt;
  }

  /// What the function does with a batch in which nothing counts says which word it is.
  std::optional<Proposal> empty() const {
    if (brought_.subject.contract.empty != Empty::zero) return std::nullopt;
    const auto made = made_of_nothing({brought_, brought_.subject}, kind_.cases.front());
    if (!made) return std::nullopt;
    impl::Subject subject = brought_.subject;
    subject.contract.empty = made->word;
    if (still_fails(subject)) return std::nullopt;
    return Proposal{fmt::format("{} {}", kContractTable, line_of(made->word)),
                    made->word == Empty::nan
                        ? "the trainer drops the NaN of a batch without a valid position"
                        : "the trainer never asks for a batch without a valid position",
                    made->said,
                    {}};
  }

  /// Of parts that are averaged, of as few promises as will do.
  std::optional<Proposal> even_parts() const {
    if (kind_.property->name != kSplitInvariance) return std::nullopt;
    for (const EvenParts& even : even_parts_of(brought_)) {
      const auto subject = even.promised(brought_.subject);
      if (!subject || still_fails(*subject)) continue;
      if (!is_right_of(brought_, *subject, even, *kind_.property)) continue;
      std::string text;
      for (const std::string& line : even.lines()) {
        text += fmt::format("{}{} {}", text.empty() ? "" : "\n", kContractTable, line);
      }
      return Proposal{text, even.price(), "", {}};
    }
    return std::nullopt;
  }

 private:
  /// Not of what is another number there, or none.
  std::optional<Proposal> empty_rows() const {
    impl::Subject subject = brought_.subject;
    if (std::exchange(subject.contract.empty_rows, EmptyRows::counted) == EmptyRows::counted ||
        still_fails(subject)) {
      return std::nullopt;
    }
    const AskedUnder declared(brought_, brought_.subject);
    const auto counted = [&](const Case& c) { return counts_empty_rows(declared, c); };
    if (std::ranges::none_of(some_cases(kind_), counted)) return std::nullopt;
    return Proposal{fmt::format("{} empty_rows = \"counted\"", kContractTable),
                    "a mean over sequences is meant to count those without a valid position",
                    "",
                    {}};
  }

  bool still_fails(const impl::Subject& subject) const {
    const AskedUnder asked(brought_, subject);
    return std::ranges::any_of(kinds_, [&](const Failure& kind) {
      return std::ranges::any_of(some_cases(kind),
                                 [&](const Case& c) { return asked.fails(*kind.property, c); });
    });
  }

  static std::span<const Case> some_cases(const Failure& kind) {
    return {kind.cases.begin(), std::min(kind.cases.size(), kMostTried)};
  }

  /// Leaves as much at masked positions of the field as will do.
  void loosen(impl::Subject& subject, const std::string& name, Masked needed) const {
    Masked& left = subject.masked_of_field[name];
    left = brought_.loss.signature.find_field(name)->masked;
    while (left < needed && still_fails(subject))
      left = static_cast<Masked>(static_cast<int>(left) + 1);
  }

  Proposal masked_line(const impl::Subject& subject) const {
    std::string line = "default = " + word(subject.masked), right;
    std::map<Masked, std::string> names;
    for (const auto& [field, masked] : subject.masked_of_field) {
      if (masked != subject.masked) line += ", " + field + " = " + word(masked);
      if (brought_.loss.signature.find_field(field)->masked == masked) continue;
      names[masked] += (names[masked].empty() ? "" : ", ") + field;
    }
    for (const auto& [masked, fields] : names) {
      const char* what = masked == Masked::zero       ? "nothing but 0"
                         : masked == Masked::ordinary ? "numbers of a healthy run"
                         : masked == Masked::finite   ? "finite numbers"
                                                      : "finite numbers and -inf";
      right += fmt::format("{}{} at masked positions of {}",
                           right.empty() ? "callers leave " : ", and ", what, fields);
    }
    return {fmt::format("{} masked = {{ {} }}", kContractTable, line), right, "", {}};
  }

  std::optional<Proposal> flag(bool impl::Contract::*member, const char* name,
                               const char* right) const {
    impl::Subject subject = brought_.subject;
    if (!std::exchange(subject.contract.*member, false) || still_fails(subject))
      return std::nullopt;
    return Proposal{fmt::format("{} {} = false", kContractTable, name), right, "", {}};
  }

  /// None of a trial may fail then, as a case that is made so may have lost what else is wrong in
  /// it.
  std::optional<Proposal> largest() const {
    return try_largest(brought_, [&](const impl::Subject& subject) {
      return !still_fails(subject) && always_holds(brought_, subject, *kind_.property);
    });
  }

  /// Callers who have one advantage for each sequence. A case that is made so may have lost what
  /// else is wrong in it, so none of a trial may fail.
  std::optional<Proposal> expanded() const {
    const LossSignature& loss = brought_.loss.signature;
    const Field* advantage = loss.find_field(loss.advantage);
    if (!advantage || !is_positional(*advantage) || brought_.subject.entry.starts_with("so:")) {
      return std::nullopt;
    }
    for (const auto& [parameter, source] : brought_.greeting.arguments) {
      if (source != "field:" + loss.advantage) continue;
      const std::string once = fmt::format("{} as {}", source, impl::kExpanded);
      impl::Subject subject = brought_.subject;
      std::erase_if(subject.arguments, [&](const auto& own) { return own.first == parameter; });
      subject.arguments.emplace_back(parameter, once);
      if (still_fails(subject) || !always_holds(brought_, subject, *kind_.property)) continue;
      return Proposal{
          "[[subject]] arguments = " + toml_table(subject.arguments),
          "callers have one advantage for each sequence, the same for all of its tokens",
          "",
          {}};
    }
    return std::nullopt;
  }

  /// Another word for what the trainer does with parts is no contract, and as easily mistaken. All
  /// splits of a trial must be right under it: a word for those of some would be none for the rest.
  std::optional<Proposal> combination(impl::Combination impl::Subject::*member,
                                      const char* name) const {
    using enum impl::Combination;
    if (kind_.property->name != kSplitInvariance) return std::nullopt;
    for (const auto& [value, text] : {std::pair(sum, "sum"), std::pair(mean, "mean"),
                                      std::pair(token_weighted, "token_weighted")}) {
      impl::Subject subject = brought_.subject;
      if (subject.*member == none || std::exchange(subject.*member, value) == value) continue;
      if (still_fails(subject) || !always_holds(brought_, subject, *kind_.property)) continue;
      return Proposal{fmt::format("[[subject]] {} = \"{}\"", name, text),
                      "that is what the trainer does with their losses",
                      "",
                      {}};
    }
    return std::nullopt;
  }

  const Brought& brought_;
  std::span<const Failure> kinds_;
  const Failure& kind_;
};

}  // namespace

std::optional<Proposal> line_against(const Brought& brought, std::span<const Failure> kinds) {
  return Trial(brought, kinds).explain();
}

std::optional<Proposal> masked_line_against(const Brought& brought,
                                            std::span<const Failure> kinds) {
  return Trial(brought, kinds).masked();
}

std::optional<Proposal> empty_line_against(const Brought& brought, std::span<const Failure> kinds) {
  return Trial(brought, kinds).empty();
}

std::optional<Proposal> even_line_against(const Brought& brought, std::span<const Failure> kinds) {
  return Trial(brought, kinds).even_parts();
}

}  // namespace lossgate::ci
