// SPDX-License-Identifier: Apache-2.0
#include "regressions/replay.h"

#include <algorithm>
#include <cmath>
#include <exception>

namespace lossgate::regressions {
namespace {

using properties::CaseStudy;
using properties::Verdict;
using reference::Real;
using reference::Tracked;

Reply ask(CaseStudy& study, const impl::Implementation& implementation,
          const std::vector<const properties::Property*>& properties) {
  Reply reply{.implementation = &implementation,
              .unsupported = {},
              .failure = {},
              .answers = {},
              .actual = {}};
  if (const auto reason = implementation.unsupported(study.split())) {
    reply.unsupported = *reason;
    return reply;
  }
  try {
    properties::Evaluation evaluation(study, implementation);
    const bool precedence = !implementation.fault;
    auto outcomes = properties::check_all(evaluation, properties, precedence);
    for (std::size_t i = 0; i < properties.size(); ++i) {
      Answer& answer = reply.answers.emplace_back();
      answer.property = properties[i];
      if (outcomes[i].violation) {
        answer.finding = properties::make_finding(study, implementation, *properties[i],
                                                  *outcomes[i].violation, /*benign=*/false);
      }
      answer.outcome = std::move(outcomes[i]);
    }
    reply.actual = evaluation.actual();
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

// The place of the first violation, of a sound implementation if there is one.
std::optional<properties::Place> first_place(const Replay& replay) {
  for (const bool faulty : {false, true}) {
    for (const Reply& reply : replay.replies) {
      if (reply.implementation->fault.has_value() != faulty) continue;
      for (const Answer& answer : reply.answers) {
        if (answer.outcome.violation) return answer.outcome.violation->place;
      }
    }
  }
  return std::nullopt;
}

Sight sight_of(CaseStudy& study, const Reply& reply, const Tensor& tensor, std::size_t output,
               std::int64_t index, Real& expected) {
  Sight sight{.implementation = reply.implementation, .bits = {}};
  sight.bits.assign(tensor.element(index), tensor.element(index) + size_of(tensor.dtype));
  sight.actual = tensor.at(index);
  const Arithmetic arithmetic =
      reply.implementation->arithmetic(float_dtype(study.signature(), study.whole()));
  study.for_each_expected(arithmetic, false, [&](std::size_t o, std::int64_t i, const Tracked& x) {
    if (o != output || i != index) return;
    expected = x.v;
    const double distance = static_cast<double>(std::fabs(sight.actual - x.v));
    sight.bound = reference::kThreshold * x.err + x.half;
    sight.error_ratio = distance <= x.half ? 0.0 : (distance - x.half) / x.err;
    sight.ulp_error = ulp_error(tensor.dtype, sight.actual, x.v);
  });
  return sight;
}

// Where values can be compared: nothing for an input that must be refused.
std::optional<Spot> spot_of(CaseStudy& study, const Replay& replay) {
  if (study.refusal() || study.outputs().empty()) return std::nullopt;
  const auto& outputs = study.outputs();
  properties::Place place = first_place(replay).value_or(properties::Place{});
  auto output = std::ranges::find(outputs, place.output, &OutputInfo::name);
  if (output == outputs.end() || place.index < 0 || place.index >= element_count(output->extents)) {
    output = outputs.begin();
    place = {.output = output->name, .index = 0};
    if (element_count(output->extents) == 0) return std::nullopt;
  }
  const auto at = static_cast<std::size_t>(output - outputs.begin());
  Spot spot{.place = place, .dtype = output->dtype, .expected = 0.0L, .sights = {}};
  for (const Reply& reply : replay.replies) {
    const Tensor* tensor = reply.actual.find(output->name);
    if (!tensor || tensor->size() <= place.index) continue;
    spot.sights.push_back(sight_of(study, reply, *tensor, at, place.index, spot.expected));
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

Replay replay(const reference::Loss& loss, const Case& c,
              const std::vector<const impl::Implementation*>& implementations,
              const std::vector<const properties::Property*>& properties,
              const std::vector<Expectation>& expected) {
  CaseStudy study(loss, c);
  Replay replay;
  replay.refusal = study.refusal();
  for (const impl::Implementation* implementation : implementations) {
    replay.replies.push_back(ask(study, *implementation, properties));
  }
  mark(replay, expected);
  replay.spot = spot_of(study, replay);
  return replay;
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

}  // namespace lossgate::regressions
