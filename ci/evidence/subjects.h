// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ci/evidence/kind.h"
#include "fuzz/profile.h"
#include "impl/implementation.h"
#include "properties/property.h"
#include "reference/reference.h"

namespace lossgate::ci::evidence {

/// A sound implementation on cases of one dtype.
struct Sound {
  const reference::Loss* loss;
  const impl::Implementation* implementation;
  Dtype dtype;

  std::string name() const;  ///< "grpo/f32/eager"
};

/// Of every loss and dtype: where the effort is quick the first implementation of the catalog, else
/// all of them.
std::vector<Sound> sound_subjects(const Effort& effort);

/// The index-th case of that stream, the same as a gate with that seed draws.
Case drawn(const reference::Loss& loss, Dtype dtype, fuzz::Profile profile, std::uint64_t seed,
           std::int64_t index);

/// A unit for each implementation that is wrong on purpose, of those whose fault any length shows
/// or of those of which only long cases do (rule E10).
std::vector<Unit> of_each_fault(
    bool of_length, const std::function<nlohmann::json(const impl::Implementation&)>& measure);

/// What a gate asks: all properties but those of hardening.
std::vector<const properties::Property*> asked_properties();

}  // namespace lossgate::ci::evidence
