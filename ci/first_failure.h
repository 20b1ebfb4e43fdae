// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ci/errors.h"
#include "ci/selection.h"
#include "fuzz/minimise.h"

namespace lossgate::ci {

/// A call of the implementation does not return from the case: no property says anything.
struct DoesNotReturn : InputError {
  DoesNotReturn(const std::string& what, const impl::Implementation& of)
      : InputError(what), implementation(&of) {}
  const impl::Implementation* implementation;
};

/// The first property, in order of precedence, that fails; of the first implementation that does,
/// the sound ones before those that are wrong on purpose. Of what `wanted` says, if anything.
/// Throws DoesNotReturn.
std::optional<fuzz::Failure> first_failure(
    const Selection& selection, const Case& c,
    const std::function<bool(const impl::Implementation&, const properties::Property&)>& wanted =
        nullptr);

/// Throws InputError where nothing that was asked for computes the loss of the case in the file.
void check_computed(const Selection& selection, const Case& c, const std::string& file);

/// Where none of the loss can be asked about the case, as when its options are fixed to others:
/// that nothing was asked, after a line for each that says why. Empty where some can.
std::string why_unasked(const Selection& selection, const Case& c);

/// The subject that the implementation is; null where it is one of the catalog.
const Brought* brought_as(const Selection& selection, const impl::Implementation& implementation);

/// The other properties that the case violates of the same implementation, in one line: those that
/// a replay says, which does not ask what is red already (rule E2).
std::string also_violated(const Selection& selection, const fuzz::Failure& first, const Case& c);

}  // namespace lossgate::ci
