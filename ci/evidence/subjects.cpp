// SPDX-License-Identifier: Apache-2.0
#include "ci/evidence/subjects.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "ci/selection.h"
#include "fuzz/draw_case.h"
#include "impl/catalog.h"

namespace lossgate::ci::evidence {
namespace {

/// Whether it computes cases of this dtype at all.
bool computes(const impl::Implementation& implementation, const reference::Loss& loss,
              Dtype dtype) {
  constexpr std::int64_t kTries = 8;
  for (std::int64_t i = 0; i < kTries; ++i) {
    const Case c = drawn(loss, dtype, fuzz::Profile::benign, 1, i);
    if (!implementation.unsupported(c)) return true;
  }
  return false;
}

}  // namespace

std::string Sound::name() const {
  return loss->signature.id + "/" + std::string(lossgate::name(dtype)) + "/" + implementation->name;
}

std::vector<Sound> sound_subjects(const Effort& effort) {
  std::vector<Sound> subjects;
  std::set<std::pair<std::string, Dtype>> taken;
  for (const impl::Implementation& implementation : impl::catalog()) {
    if (implementation.fault) continue;
    const reference::Loss& loss = *reference::find_loss(implementation.loss);
    for (const Dtype dtype : dtypes_of(loss.signature)) {
      if (effort.quick && taken.contains({implementation.loss, dtype})) continue;
      if (!computes(implementation, loss, dtype)) continue;
      taken.insert({implementation.loss, dtype});
      subjects.push_back({&loss, &implementation, dtype});
    }
  }
  return subjects;
}

Case drawn(const reference::Loss& loss, Dtype dtype, fuzz::Profile profile, std::uint64_t seed,
           std::int64_t index) {
  fuzz::Choices choices = fuzz::case_choices(seed, loss.signature.id, dtype, profile,
                                             static_cast<std::uint64_t>(index));
  return fuzz::draw_case(loss.signature, dtype, profile, choices);
}

std::vector<Unit> of_each_fault(
    bool of_length, const std::function<nlohmann::json(const impl::Implementation&)>& measure) {
  std::vector<Unit> units;
  for (const impl::Implementation& variant : impl::catalog()) {
    if (!variant.fault || variant.fault->of_length != of_length) continue;
    units.push_back(
        {variant.loss + "/" + variant.name, [&variant, measure] { return measure(variant); }});
  }
  return units;
}

std::vector<const properties::Property*> asked_properties() {
  std::vector<const properties::Property*> asked;
  for (const properties::Property& property : properties::catalog()) {
    if (property.tier != properties::Tier::hardening) asked.push_back(&property);
  }
  return asked;
}

}  // namespace lossgate::ci::evidence
