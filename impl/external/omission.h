// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "impl/external/greeting.h"
#include "impl/external/subject.h"

namespace lossgate::impl {

/// Optional fields that callers leave out together, and what the subject is called where they do.
struct Omission {
  std::string name;
  std::vector<std::string> fields;
};

/// Those that the subject's callers may make, as far as its loss and its contract go: each optional
/// field by itself, but log-probs that a reference gives, and others of one kind that the same
/// stands in for, together.
std::vector<Omission> omissions(const Subject& subject, const LossSignature& loss);

/// The subject as it is called then, each parameter of these fields left at its default. None where
/// one of these is no None, or where no parameter takes any of the fields.
std::optional<Subject> omitting(const Omission& omission, Subject subject,
                                const Greeting& greeting);

}  // namespace lossgate::impl
