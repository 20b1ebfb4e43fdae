// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ci/brought.h"
#include "impl/implementation.h"
#include "properties/property.h"
#include "reference/reference.h"

namespace lossgate::ci {

/// Filters by name; an empty list selects everything.
struct Filters {
  std::vector<std::string> losses, implementations, properties, dtypes;
  bool hardening = false;  ///< properties of that tier as well
  /// Where there are any, these are asked, and nothing else.
  std::vector<SubjectFile> subjects;
};

/// What the filters leave, in the order of the catalogs.
struct Selection {
  /// With an implementation. One for each brought subject, under its own signature.
  std::vector<const reference::Loss*> losses;
  std::vector<const reference::Loss*> unasked;               ///< without one
  std::vector<const impl::Implementation*> implementations;  ///< of these losses
  std::vector<const properties::Property*> properties;
  std::vector<Dtype> dtypes;
  std::vector<std::shared_ptr<const Brought>> brought;

  /// Of the catalog, or of a subject that brings its own; null where there is none.
  const LossSignature* find_signature(std::string_view loss) const;
  bool has(Dtype dtype) const;
  bool has(const reference::Loss& loss) const;
  /// Names are unique within a loss.
  const impl::Implementation* find_implementation(std::string_view loss,
                                                  std::string_view name) const;
};

/// In seconds, how long a process that asks these may be silent: a call has `timeout`, but how long
/// a brought subject may take for one is the subject's own limit, besides what it takes to load.
double patience_with(const Selection& selection, double timeout);

/// Throws InputError for a name that does not exist.
void check_names(const Filters& filters);

/// Throws as check_names does.
Selection select(const Filters& filters);

std::vector<std::string> loss_names();
std::vector<std::string> implementation_names(std::string_view loss = {});  ///< of one, or of all
std::vector<std::string> property_names();

/// The floating-point dtypes in which cases of the loss exist; f32 alone stands for "none".
std::vector<Dtype> dtypes_of(const LossSignature& signature);

}  // namespace lossgate::ci
