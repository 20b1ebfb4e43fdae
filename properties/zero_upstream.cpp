// SPDX-License-Identifier: Apache-2.0
#include "properties/zero_upstream.h"

#include "properties/agreement.h"

namespace lossgate::properties {
namespace {

using reference::Tracked;

std::optional<Transformed> driven(const LossSignature&, const Case& whole, const Case&) {
  Transformed result{whole};
  result.c.upstream = 1.0;
  return result;
}

/// The case under an upstream gradient of 1.
constexpr Transform kDriven{"driven", driven};

}  // namespace

std::set<OutputEntry> nan_excused(CaseStudy& study, const Arithmetic& arithmetic) {
  std::set<OutputEntry> excused;
  if (study.whole().upstream != 0.0) return excused;
  const auto& outputs = study.outputs();
  std::set<std::pair<std::int64_t, std::int64_t>> overflowing;  // sequence, token
  const auto visit = [&](std::size_t o, std::int64_t i, const Tracked& expected) {
    OutputInfo output = outputs[o];
    const bool slope = output.kind == OutputKind::gradient;
    if (slope) output.dtype = arithmetic.compute;  // multiplied before it is stored
    if (must_be_finite(arithmetic, output, expected)) return;
    if (slope) {
      excused.emplace(o, i);
    } else if (const Place place = place_of(study, output, i); place.token >= 0) {
      overflowing.emplace(place.sequence, place.token);
    }
  };
  study.derived(kDriven)->for_each_expected(arithmetic, false, visit);
  for (std::size_t o = 0; o < outputs.size() && !overflowing.empty(); ++o) {
    if (outputs[o].kind != OutputKind::gradient) continue;
    for (std::int64_t i = 0; i < element_count(outputs[o].extents); ++i) {
      const Place place = place_of(study, outputs[o], i);
      if (overflowing.contains({place.sequence, place.token})) excused.emplace(o, i);
    }
  }
  return excused;
}

}  // namespace lossgate::properties
