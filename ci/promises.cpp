// SPDX-License-Identifier: Apache-2.0
#include "ci/promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "ci/asked_under.h"
#include "ci/variant.h"
#include "properties/diagnosis.h"

namespace lossgate::ci {
namespace {

using impl::Combination;
using impl::Subject;

/// The cause that experiments on the first case tell, where any does.
std::string diagnosed(const AskedUnder& asked, const Failure& failure) {
  properties::CaseStudy study(asked.loss(), failure.cases.front());
  properties::Evaluation evaluation(study, asked.implementation());
  const auto outcome = failure.property->check(evaluation);
  if (!outcome.violation) return failure.cause;
  return diagnose(study, asked.implementation(), *failure.property, *outcome.violation).cause;
}

class Trials {
 public:
  explicit Trials(const Brought& brought)
      : brought_(brought),
        declared_(brought, brought.subject),
        failing_(failures(declared_, brought.dtypes.front())) {}

  std::vector<Promise> run() {
    masked();
    infinities();
    splits();
    dtypes();
    return std::move(found_);
  }

 private:
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
      const Promise& tried = ask(subject, {.table = std::string(kContractTable),
                                           .line = fmt::format("masked = \"{}\"", word),
                                           .asked = asked});
      if (tried.kept()) return;
    }
  }

  void infinities() {
    const bool legal =
        std::ranges::any_of(whole_signature(brought_.subject).fields,
                            [](const Field& field) { return field.infinity == Infinity::legal; });
    Subject subject = brought_.subject;
    if (!legal || std::exchange(subject.contract.infinite_valid, true)) return;
    ask(subject, {.table = std::string(kContractTable),
                  .line = "infinite_valid = true",
                  .asked = "-inf at valid positions, as a filter of logits leaves it"});
  }

  void splits() {
    if (!whole_signature(brought_.subject).splittable) return;
    if (brought_.subject.micro_batches != Combination::none) return;
    for (const auto& [value, word] :
         {std::pair(Combination::sum, "sum"), std::pair(Combination::mean, "mean"),
          std::pair(Combination::token_weighted, "token_weighted")}) {
      Subject subject = brought_.subject;
      subject.micro_batches = value;
      ask(subject, {.table = std::string(kSubjectTable),
                    .line = fmt::format("micro_batches = \"{}\"", word),
                    .asked = "a batch in parts, whose losses the trainer combines so",
                    .of_trainer = true});
    }
  }

  void dtypes() {
    const auto& asked = brought_.dtypes;
    // A library has pointers of one type.
    if (asked != std::vector{Dtype::f32} || brought_.subject.entry.starts_with("so:")) return;
    Subject subject = brought_.subject;
    subject.dtypes = {Dtype::bf16};
    ask(subject, {.table = std::string(kSubjectTable),
                  .line = "dtypes = [\"f32\", \"bf16\"]",
                  .asked = "fields in bf16"});
  }

  const Promise& ask(const Subject& subject, Promise promise) {
    const Dtype dtype = subject.dtypes.front();
    try {
      const AskedUnder asked(brought_, subject);
      const Failures found = failures(asked, dtype);
      promise.cases = found.cases;
      for (Failure failure : found.all) {
        if (fails_already(failure)) continue;
        failure.cause = diagnosed(asked, failure);
        promise.failing.push_back(failure.text());
      }
    } catch (const ImplementationThrew& error) {
      promise.cases = 1;
      promise.failing = {error.what()};
    }
    found_.push_back(std::move(promise));
    return found_.back();
  }

  /// Whether it is seen without the promise, too: the property fails as it is declared, or these
  /// cases do once callers keep to that.
  bool fails_already(const Failure& failure) const {
    return std::ranges::find(failing_.all, failure.property, &Failure::property) !=
               failing_.all.end() ||
           std::ranges::all_of(
               failure.cases, [&](const Case& c) { return declared_.fails(*failure.property, c); });
  }

  const Brought& brought_;
  AskedUnder declared_;
  Failures failing_;
  std::vector<Promise> found_;
};

}  // namespace

std::vector<Promise> try_promises(const Brought& brought) { return Trials(brought).run(); }

}  // namespace lossgate::ci
