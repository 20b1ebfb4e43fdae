// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "ci/selection.h"

/// Cases that were stored for a loss, put to a brought subject, whose callers promise what its
/// contract says.
namespace lossgate::ci {

/// The loss with what the subject says of its options in place of their defaults.
LossSignature as_declared(LossSignature whole, const impl::Subject& subject);

/// Reads a case. What a dump leaves out is as the subject of its loss declares it, the first of
/// several, or else the default of the loss. Throws FormatError.
Case read_case(const std::filesystem::path& path, const Selection& selection);

/// The case as callers of the subject have it, in whose f32 what 16 bits hold is the same.
Case as_its_callers_have_it(const LossSignature& narrowed, Case c);

/// The case under the reduction and the options that the subject has whatever is asked, of the same
/// tensors, and without its story; nothing where those are what the case has, or the loss refuses
/// it under them.
std::optional<Case> at_its_options(const Brought& brought, Case c);

/// Whether a caller who keeps to the contract would not ask it: what lies behind the mask, what is
/// to be refused by one that refuses nothing.
bool is_outside_contract(const Brought& brought, const Case& c);

}  // namespace lossgate::ci
