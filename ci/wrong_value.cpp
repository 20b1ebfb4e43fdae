// SPDX-License-Identifier: Apache-2.0
#include "ci/wrong_value.h"

#include <fmt/format.h>

#include "ci/errors.h"
#include "ci/shifting.h"
#include "reference/spec/even_parts.h"
#include "regressions/replay.h"
#include "report/finding_text.h"
#include "report/value_text.h"

namespace lossgate::ci {
namespace {

/// The first row alone, the others together, where the trainer makes micro-batches; as large as
/// each other where it makes no others.
void deal(const Brought& brought, Case& c) {
  const std::int64_t rows = c.shape[Axis::sequences];
  if (brought.subject.micro_batches == impl::Combination::none || !c.split.whole() || rows < 2) {
    return;
  }
  c.split.parts = {{.rank = 0, .sequences = {0}}, {.rank = 0, .sequences = {}}};
  for (std::int64_t row = 1; row < rows; ++row) c.split.parts[1].sequences.push_back(row);
  make_parts_even(brought.loss.signature, c);
}

/// In the tensors that a function which shifts was given, numbers of tokens begin one earlier.
void place_as_given(const LossSignature& signature, properties::Place& place) {
  if (!place.in_gradient() || place.coordinates.size() < 2 || place.token < 0) return;
  const Field* field = signature.find_field(place.output.substr(std::string("gradient.").size()));
  if (field && is_of_token(*field)) ++place.coordinates[1];
}

}  // namespace

std::optional<Judgement> judge_by_formula(const Brought& brought, Case c) {
  deal(brought, c);
  std::vector<const properties::Property*> asked;
  for (const char* name :
       {"finite_forward", "finite_backward", "reference_agreement", "split_invariance"}) {
    asked.push_back(properties::find_property(name));
  }
  const auto replay = regressions::replay(brought.loss, c, {&brought.implementation}, asked, {});
  const regressions::Reply& reply = replay.replies.at(0);
  for (const std::string& reason : {reply.unsupported, reply.failure}) {
    if (reason.empty()) continue;
    throw InputError(fmt::format("{} is not compared with the formula: {}",
                                 brought.implementation.name, reason));
  }
  for (const regressions::Answer& answer : reply.answers) {
    if (!answer.finding) continue;
    properties::Violation violation = answer.finding->violation;
    if (shifts(brought.subject)) place_as_given(brought.loss.signature, violation.place);
    Judgement judgement{.word = Judgement::Word::guilty};
    judgement.place = report::place_text(violation.place);
    judgement.row = violation.place.sequence;
    judgement.token = violation.place.token;
    judgement.cause = answer.finding->diagnosis.cause;
    judgement.because =
        fmt::format("{}: {} where the formula has {}; {}", answer.property->name,
                    report::decimal(violation.actual), report::decimal(violation.expected),
                    report::because_text(answer.finding->diagnosis));
    judgement.line = impl::GuiltyLine{.source = brought.greeting.source,
                                      .code = brought.greeting.code,
                                      .operation = {},
                                      .text = {},
                                      .element = {}};
    return judgement;
  }
  return std::nullopt;
}

}  // namespace lossgate::ci
