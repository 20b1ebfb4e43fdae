// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "impl/external/subject.h"

/// A function that returns the square of an option times the formula, as Hinton's T^2 KL.
namespace lossgate::impl {

/// That square under the options of a case; 1 of a subject that is not scaled.
double scale_of(const Subject& subject, const LossSpec& spec);

/// Why no formula says what the scaled function returns on this case: its square is no power of
/// two, or the formula fits where a multiple of it may not. Nothing where one does.
std::optional<std::string> beyond_scale(const Subject& subject, const LossSignature& narrowed,
                                        const Case& c);

}  // namespace lossgate::impl
