// SPDX-License-Identifier: Apache-2.0
#include "ci/promises.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "ci/arithmetic_trial.h"
#include "ci/asked_under.h"
#include "ci/declarations.h"
#include "ci/empty_trial.h"
#include "ci/even_trial.h"
#include "ci/tame.h"
#include "ci/variant.h"
#include "reference/spec/lists.h"
#include "reference/spec/padding.h"

namespace lossgate::ci {
namespace {

using impl::Combination;
using impl::Subject;

bool says_what_counts(const Field& field) {
  return field.role == Role::mask || field.role == Role::label;
}

class Trials {
 public:
  Trials(const Brought& brought, const Failures& failing)
      : brought_(brought), declared_(brought, brought.subject), failing_(failing) {}

  std::vector<Promise> run() {
    masked();
    flag(
        &impl::Contract::infinite_valid,
        [](const Field& field) {
          return field.infinity == Infinity::legal || field.infinite_where.has_value();
        },
        {.line = "infinite_valid = true",
         .asked = "-inf at valid positions, as a filter of logits leaves it"},
        without_infinities);
    flag(
        &impl::Contract::int32_labels,
        [](const Field& field) { return std::ranges::count(field.dtypes, Dtype::i32) > 0; },
        {.line = "int32_labels = true", .asked = "labels in int32"}, with_long_labels);
    flag(&impl::Contract::repeated_tokens, is_list,
         {.line = "repeated_tokens = true", .asked = "a token twice in a list"},
         make_lists_distinct);
    if (!is_told_lengths()) {
      flag(&impl::Contract::scattered_mask, says_what_counts,
           {.line = "scattered_mask = true",
            .asked = "masked positions before and between those that count"},
           move_valid_first);
    }
    flag(&impl::Contract::masked_outputs, says_what_counts,
         {.line = "masked_outputs = true", .asked = "0 at masked positions of outputs"}, as_it_is);
    autocast();
    splits();
    dtypes();
    return std::move(found_);
  }

 private:
  /// Which say nothing of where in a sequence they lie.
  bool is_told_lengths() const {
    return std::ranges::any_of(brought_.greeting.arguments, [](const auto& argument) {
      return impl::is_converted(argument.second, "lengths");
    });
  }

  void masked() {
    if (brought_.subject.masked != Masked::finite || !brought_.subject.masked_of_field.empty()) {
      return;
    }
    const auto& fields = whole_signature(brought_.subject).fields;
    if (!std::ranges::any_of(fields, &is_positional)) return;
    for (const auto& [value, word, asked] :
         {std::tuple(Masked::anything, "any", "anything at masked positions, NaN and infinities"),
          std::tuple(Masked::minus_infinity, "-inf", "-inf at masked positions")}) {
      Subject subject = brought_.subject;
      subject.masked = value;
      const Promise& tried = ask(
          subject, {.line = fmt::format("masked = \"{}\"", word), .asked = asked}, once(as_it_is));
      if (tried.kept()) return;
    }
  }

  /// What the contract denies by itself, where a field of the loss has it.
  void flag(bool impl::Contract::*member, bool (*has)(const Field&), Promise promise, Tame tame) {
    Subject subject = brought_.subject;
    if (!std::ranges::any_of(whole_signature(subject).fields, has)) return;
    if (std::exchange(subject.contract.*member, true)) return;
    ask(subject, std::move(promise), once(tame));
  }

  /// Of all ways to go about gradients this one alone; what it makes of a case shows nothing of it.
  void autocast() {
    Subject declared = brought_.subject;
    if (declared.contract.autocast || declared.dtypes.front() != Dtype::f32) return;
    if (!beyond_autocast(declared, whole_signature(declared)).empty()) return;
    declared.contract.grad_modes = false;
    Subject subject = declared;
    subject.contract.autocast = true;
    ask(subject,
        {.line = "autocast = true",
         .asked = "a forward inside torch.autocast, as trainers have it",
         .times = 1},
        under(declared));
  }

  void splits() {
    if (!whole_signature(brought_.subject).splittable) return;
    if (brought_.subject.micro_batches != Combination::none) return;
    const auto made = of_nothing();
    const std::string beside = made ? line_of(*made) : "";
    const auto keeps = [&](Combination value, const char* word, const EvenParts& even) {
      Subject subject = *even.promised(brought_.subject);
      subject.micro_batches = value;
      if (made) subject.contract.empty = *made;
      Promise promise{.table = std::string(kSubjectTable),
                      .line = fmt::format("micro_batches = \"{}\"", word),
                      .asked = "a batch in parts, whose losses the trainer combines so" +
                               (made ? ", beside " + beside : ""),
                      .of_trainer = true,
                      .beside = beside,
                      .needs = fmt::format("{}", fmt::join(even.lines(), ", ")),
                      .price = even.price()};
      if (even.parts) promise.asked += ", beside " + promise.needs + ": " + promise.price;
      return ask(subject, std::move(promise), as_declared()).kept();
    };
    const bool sums = keeps(Combination::sum, "sum", {});
    const bool means = keeps(Combination::mean, "mean", {});
    if (keeps(Combination::token_weighted, "token_weighted", {}) || sums || means) return;
    if (!brought_.subject.contract.uneven_parts) return;
    // As a last resort: no other way to combine its parts is right.
    if (!keeps(Combination::mean, "mean", {.parts = true})) found_.pop_back();
  }

  /// Where a micro-batch may be empty, no word is right for who makes no number of that.
  std::optional<Empty> of_nothing() const {
    if (brought_.subject.contract.empty != Empty::zero) return std::nullopt;
    try {
      const auto made = made_of_nothing(declared_, brought_.dtypes.front());
      return made ? std::optional(made->word) : std::nullopt;
    } catch (const ImplementationThrew&) {  // a gate shows it
      return std::nullopt;
    }
  }

  void dtypes() {
    const auto& asked = brought_.dtypes;
    // A library has pointers of one type.
    if (asked != std::vector{Dtype::f32} || brought_.subject.entry.starts_with("so:")) return;
    Subject subject = brought_.subject;
    subject.dtypes = {Dtype::bf16};
    const Promise& tried = ask(subject,
                               {.table = std::string(kSubjectTable),
                                .line = "dtypes = [\"f32\", \"bf16\"]",
                                .asked = "fields in bf16"},
                               as_declared());
    if (!tried.kept()) return;
    arithmetic(subject);
    wide(subject);
  }

  /// Undeclared, each operation may round to the fields' format, which of 16 bits leaves an error
  /// of a hundredth much room: whether it computes in f32, or in what else fits its values and says
  /// no less of f32 fields. Declares what it keeps.
  void arithmetic(Subject& in_16_bits) {
    if (brought_.loss.advice || in_16_bits.arithmetic.compute) return;
    Subject subject = in_16_bits;
    subject.arithmetic.compute = Dtype::f32;
    std::string worth;
    try {
      const auto trial =
          try_arithmetic(redeclared(brought_, in_16_bits), in_16_bits.dtypes.front());
      if (trial.declaration && !narrows(*trial.declaration, Dtype::f32)) {
        subject.arithmetic = *trial.declaration;
        worth = "; " + trial.worth;
      }
    } catch (const ImplementationThrew&) {  // a gate shows it
      return;
    }
    const Promise& tried =
        ask(subject,
            {.table = std::string(kSubjectTable),
             .line = fmt::format("arithmetic = {{ {} }}",
                                 fmt::join(impl::toml_lines(subject.arithmetic), ", ")),
             .asked = "16 bits are what fields are stored in" + worth},
            under(in_16_bits));
    if (tried.kept()) in_16_bits = subject;
  }

  /// What callers compute in f32, where a model computes in 16 bits.
  void wide(Subject in_16_bits) {
    std::vector<std::string> quoted;
    bool narrow = false;
    in_16_bits.wide.clear();
    for (const Field& field : brought_.loss.signature.fields) {
      if (!field.dtypes.empty() || !impl::takes(brought_.greeting, field)) continue;
      if (field.role == Role::differentiable) {
        narrow = true;
        continue;
      }
      in_16_bits.wide.push_back(field.name);
      quoted.push_back('"' + field.name + '"');
    }
    if (!narrow || quoted.empty()) return;
    ask(in_16_bits,
        {.table = std::string(kSubjectTable),
         .line = fmt::format("wide = [{}]", fmt::join(quoted, ", ")),
         .asked = "these in f32 where others have 16 bits"},
        as_declared());
  }

  /// In these cases, once they are such as the contract allows by itself.
  Already once(Tame tame) const {
    return [this, tame](const Failure& failure) {
      return std::ranges::all_of(failure.cases, [&](Case c) {
        tame(brought_.loss.signature, c);
        return declared_.fails(*failure.property, c);
      });
    };
  }

  /// In these cases, of another declaration.
  Already under(const Subject& other) const { return seen_under({brought_, other}); }

  /// Of a format, which no case can leave: where the property fails as it is declared.
  Already as_declared() const {
    return [this](const Failure& failure) {
      return std::ranges::find(failing_.all, failure.property, &Failure::property) !=
             failing_.all.end();
    };
  }

  const Promise& ask(const Subject& subject, Promise promise, const Already& already) {
    const Dtype dtype = subject.dtypes.front();
    Progress progress(promise.times * kTrials, 0, "cases with " + promise.line);
    try {
      const AskedUnder asked(brought_, subject);
      int answered = 0;
      for (std::uint64_t more = 0; more < promise.times && promise.failing.empty(); ++more) {
        const Failures found = failures(asked, dtype, progress, kTrialSeed + more,
                                        more == 0 ? Breadth::all : Breadth::of_the_case);
        promise.cases += found.cases;
        answered += found.answered;
        promise.failing = new_kinds(asked, found, already);
        if (answered > 0 || !promise.failing.empty()) continue;
        promise.cases = 0;  // who refuses everything keeps nothing
        break;
      }
    } catch (const ImplementationThrew& error) {
      promise.cases = 1;
      promise.failing = {error.what()};
    }
    found_.push_back(std::move(promise));
    return found_.back();
  }

  const Brought& brought_;
  AskedUnder declared_;
  const Failures& failing_;  ///< as it is declared
  std::vector<Promise> found_;
};

}  // namespace

std::vector<Promise> try_promises(const Brought& brought, const Failures& failing) {
  return Trials(brought, failing).run();
}

}  // namespace lossgate::ci
