// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "impl/implementation.h"
#include "properties/property.h"
#include "reference/reference.h"

namespace lossgate::fuzz {

/// What makes a case worth keeping: this implementation violates this property for this cause at
/// this kind of place, in a batch in which something counts or in one in which nothing does.
class Failure {
 public:
  /// Nothing where the implementation does not violate the property on the case.
  static std::optional<Failure> on(const reference::Loss& loss,
                                   const impl::Implementation& implementation,
                                   const properties::Property& property, const Case& c);

  const reference::Loss& loss() const { return *loss_; }
  const impl::Implementation& implementation() const { return *implementation_; }
  const properties::Property& property() const { return *property_; }
  const std::string& cause() const { return kind_.cause; }

  /// Whether the case fails in the same way. What the implementation does not compute does not,
  /// nor where it throws, nor what no caller hands over.
  bool shows_on(const Case& c) const;

 private:
  struct Kind {
    std::string cause, output;
    bool place_valid = true, anything_counts = true;
    bool operator==(const Kind&) const = default;
  };

  Failure(const reference::Loss& loss, const impl::Implementation& implementation,
          const properties::Property& property)
      : loss_(&loss), implementation_(&implementation), property_(&property) {}

  std::optional<Kind> kind_on(const Case& c) const;

  const reference::Loss* loss_;
  const impl::Implementation* implementation_;
  const properties::Property* property_;
  Kind kind_;
  bool keeps_to_contract_ = true;  ///< so what is simpler has to, too
};

/// When to stop, whatever could still be simpler.
struct Effort {
  std::int64_t tries = 20'000;
  std::chrono::duration<double> time = std::chrono::hours(24);
};

struct Minimised {
  Case c;
  std::int64_t tried = 0;  ///< cases, those too that held before, which are not asked again
  std::int64_t steps = 0;  ///< of these, those that fail and are simpler than all before
  bool complete = true;  ///< nothing that is left to try is simpler, rather than no effort is left
};

/// Whether what is simpler still fails in the same way.
using StillFails = std::function<bool(const Case&)>;

/// The simplest case that greedy steps reach from one that fails. Provenance is kept.
///
/// What makes later tries cheaper comes first: whole and contiguous; all numbers plain, or all of a
/// field; the ends of each axis, the shortest first, as the longest then says exactly how many
/// elements it takes. Then options, and chunks (fuzz/chunks.h) of the numbers of each field and of
/// each axis. Digits go when nothing else does. It begins again until nothing changes. A pass may
/// use a quarter of the tries that are left, and more only when no other finds anything.
///
/// That a case is as simple as it goes takes 5 tries, 1 for each option, 160 for each field and
/// 4 log2(n) + 152 for each axis at most, however many numbers there are, and 14 for each that is
/// left where a field has 64 or fewer. Time ends the search and has no other say in it: what is
/// found within it is the same on any machine.
Minimised minimise(const LossSignature& signature, const Case& c, const StillFails& still_fails,
                   const Effort& effort);

/// The same of a failure. `progress`, if any, hears of every case that still fails.
Minimised minimise(const Failure& failure, const Case& c, const Effort& effort,
                   const std::function<void(const Case&, std::int64_t tried)>& progress = nullptr);

}  // namespace lossgate::fuzz
