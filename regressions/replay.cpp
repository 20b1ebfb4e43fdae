// SPDX-License-Identifier: Apache-2.0
#include "regressions/replay.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>

#include "impl/catalog.h"
#include "properties/agreement.h"
#include "properties/sibling.h"

namespace lossgate::regressions {
namespace {

using properties::CaseStudy;
using properties::Verdict;
using reference::Real;
using reference::Tracked;

// The one property whose judged result is not that of the whole case and has the same entries.
bool judges_split(const properties::Property& property) {
  return property.name == "split_invariance";
}

// As in a gate: the first sound implementation of the loss that can be compared, or the twin of a
// faulty one. One that throws is no sibling; it fails by itself where it is asked. LibTorch's come
// last, and are opened where there is no other.
void find_sibling(CaseStudy& study, const impl::Implementation& implementation) {
  study.sibling.reset();
  for (const bool with_torch : {false, true}) {
    for (const impl::Implementation& other : impl::catalog(with_torch)) {
      const bool twin = !implementation.fault || implementation.fault->twin == other.name;
      if (other.loss != implementation.loss || other.fault || !twin) continue;
      try {
        properties::give_sibling(study, other);
      } catch (const std::exception&) {
        continue;
      }
      if (study.sibling) return;
    }
  }
}

/// The loss, say, and no gradient of logits.
LossResult small_outputs(const LossResult& result) {
  constexpr std::int64_t kSmall = 1 << 16;
  LossResult small;
  for (const Output& output : result.outputs) {
    if (output.tensor.size() <= kSmall) small.outputs.push_back(output);
  }
  return small;
}

Reply ask(CaseStudy& study, const impl::Implementation& implementation,
          const std::vector<const properties::Property*>& properties, const Asking& before) {
  Reply reply{.implementation = &implementation,
              .unsupported = {},
              .failure = {},
              .answers = {},
              .actual = {},
              .split = {}};
  if (const auto reason = implementation.unsupported(study.split())) {
    reply.unsupported = *reason;
    return reply;
  }
  try {
    properties::Evaluation evaluation(study, implementation);
    const bool precedence = !implementation.fault;
    auto outcomes = properties::check_all(evaluation, properties, precedence,
                                          [&](const properties::Property& property) {
                                            if (before) before(implementation, property);
                                            // Of a large case the sibling's result is not kept.
                                            if (property.name == "path_parity") {
                                              find_sibling(study, implementation);
                                            } else {
                                              study.sibling.reset();
                                            }
                                          });
    for (std::size_t i = 0; i < properties.size(); ++i) {
      Answer& answer = reply.answers.emplace_back();
      answer.property = properties[i];
      if (outcomes[i].violation) {
        answer.finding = properties::make_finding(study, implementation, *properties[i],
                                                  *outcomes[i].violation, /*benign=*/false);
      }
      answer.outcome = std::move(outcomes[i]);
      if (judges_split(*properties[i]) && answer.outcome.compared > 0 && !study.large()) {
        reply.split = evaluation.actual(properties::kSplit);
      }
    }
    reply.actual = study.large() ? small_outputs(evaluation.actual()) : evaluation.actual();
  } catch (const std::exception& error) {
    reply.failure = error.what();
  }
  return reply;
}

void mark(Replay& replay, const std::vector<Expectation>& expected) {
  for (Reply& reply : replay.replies) {
    for (Answer& answer : reply.answers) {
      const Expectation pair{reply.implementation->name, answer.property->name};
      answer.expected = std::ranges::find(expected, pair) != expected.end();
    }
  }
}

// The first violation, of a sound implementation if there is one; else null.
const Answer* first_violation(const Replay& replay) {
  for (const bool faulty : {false, true}) {
    for (const Reply& reply : replay.replies) {
      if (reply.implementation->fault.has_value() != faulty) continue;
      for (const Answer& answer : reply.answers) {
        if (answer.outcome.violation) return &answer;
      }
    }
  }
  return nullptr;
}

Sight sight_of(CaseStudy& study, const Reply& reply, const Tensor& tensor, std::size_t output,
               Spot& spot) {
  const std::int64_t index = spot.place.index;
  Sight sight{.implementation = reply.implementation, .bits = {}};
  sight.bits.assign(tensor.element(index), tensor.element(index) + size_of(tensor.dtype));
  sight.actual = tensor.at(index);
  const Arithmetic arithmetic =
      reply.implementation->arithmetic(float_dtype(study.signature(), study.whole()));
  const bool gradient = study.outputs()[output].kind == OutputKind::gradient;
  const auto look = [&](std::size_t o, std::int64_t i, const Tracked& x) {
    if (o != output || i != index) return false;
    spot.expected = x.v;
    sight.bound = reference::kThreshold * properties::allowed_error(study.outputs()[o], x) + x.half;
    sight.ulp_error = ulp_error(tensor.dtype, sight.actual, x.v);
    return true;
  };
  study.any_expected(arithmetic, spot.split, look,
                     gradient ? CaseStudy::Wanted::everything : CaseStudy::Wanted::values);
  return sight;
}

// Where values can be compared: nothing for an input that must be refused.
std::optional<Spot> spot_of(CaseStudy& study, const Replay& replay) {
  if (study.refusal() || study.outputs().empty()) return std::nullopt;
  const auto& outputs = study.outputs();
  const Answer* violated = first_violation(replay);
  properties::Place place = violated ? violated->outcome.violation->place : properties::Place{};
  auto output = std::ranges::find(outputs, place.output, &OutputInfo::name);
  if (output == outputs.end() || place.index < 0 || place.index >= element_count(output->extents)) {
    output = outputs.begin();
    place = {.output = output->name, .index = 0};
    if (element_count(output->extents) == 0) return std::nullopt;
  }
  const auto at = static_cast<std::size_t>(output - outputs.begin());
  Spot spot{.place = place, .dtype = output->dtype, .sights = {}};
  spot.split = violated && judges_split(*violated->property);
  for (const Reply& reply : replay.replies) {
    LossResult again;
    const Tensor* tensor = (spot.split ? reply.split : reply.actual).find(output->name);
    if (!tensor && study.large() && reply.failure.empty() && reply.unsupported.empty()) {
      const Case& asked = spot.split ? study.split() : study.whole();
      again = reply.implementation->evaluate(study.signature(), asked);
      tensor = again.find(output->name);
    }
    if (!tensor || tensor->size() <= place.index) continue;
    spot.sights.push_back(sight_of(study, reply, *tensor, at, spot));
  }
  if (spot.sights.empty()) return std::nullopt;
  return spot;
}

}  // namespace

bool Replay::failed() const {
  for (const Reply& reply : replies) {
    if (!reply.failure.empty()) return true;
    for (const Answer& answer : reply.answers) {
      const bool violated = answer.outcome.verdict == Verdict::violated;
      if (answer.expected && !violated) return true;
      if (violated && !answer.expected && !reply.implementation->fault) return true;
    }
  }
  return false;
}

bool Replay::answered() const {
  return std::ranges::any_of(replies, [](const Reply& reply) {
    return std::ranges::any_of(reply.answers, [](const Answer& answer) {
      return answer.outcome.verdict != Verdict::skipped;
    });
  });
}

Replay replay(const reference::Loss& loss, const Case& c,
              const std::vector<const impl::Implementation*>& implementations,
              const std::vector<const properties::Property*>& properties,
              const std::vector<Expectation>& expected, const Asking& before) {
  CaseStudy study(loss,
                  std::shared_ptr<const Case>(std::shared_ptr<void>(), &c));  // the caller keeps it
  Replay replay;
  for (const impl::Implementation* implementation : implementations) {
    replay.replies.push_back(ask(study, *implementation, properties, before));
  }
  // An option that a subject fixes to another value makes no case invalid.
  const auto asked = [](const Reply& reply) { return reply.unsupported.empty(); };
  if (std::ranges::any_of(replay.replies, asked)) replay.refusal = study.refusal();
  mark(replay, expected);
  replay.spot = spot_of(study, replay);
  return replay;
}

Replays replays(std::int64_t times, const std::function<Replay(std::int64_t)>& once) {
  Replays all;
  for (std::int64_t time = 1; time <= times; ++time) {
    Replay replay = once(time);
    if (replay.failed() && all.failed++ == 0) all.first_failure = time;
    const bool holds = !replay.failed() && replay.answered();
    const bool first_answer = holds && all.held++ == 0 && all.failed == 0;
    if (time == 1 || time == all.first_failure || first_answer) all.shown = std::move(replay);
  }
  return all;
}

double ulp_error(Dtype dtype, double actual, Real expected) {
  if (std::isnan(actual) && std::isnan(expected)) return 0.0;
  if (static_cast<Real>(actual) == expected) return 0.0;
  if (!std::isfinite(actual) || !std::isfinite(expected) || !is_float(dtype)) return HUGE_VAL;
  const Real magnitude = std::max(std::fabs(expected), static_cast<Real>(min_normal(dtype)));
  const Real spacing =
      std::ldexp(2.0L * static_cast<Real>(unit_roundoff(dtype)), std::ilogb(magnitude));
  return static_cast<double>(std::fabs(static_cast<Real>(actual) - expected) / spacing);
}

bool allclose(double actual, Real expected) {
  constexpr Real kRelative = 1e-5L, kAbsolute = 1e-8L;
  const auto value = static_cast<Real>(actual);
  if (!std::isfinite(value) || !std::isfinite(expected)) return value == expected;
  return std::fabs(value - expected) <= kAbsolute + kRelative * std::fabs(expected);
}

}  // namespace lossgate::regressions
