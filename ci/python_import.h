// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ci/brought.h"

/// How a test comes to the function that a subject names.
namespace lossgate::ci {

/// The lines that import it into a file of this folder, from where the worker found it.
std::string python_import(const Brought& brought, const std::string& folder);

/// What it is called by then: its own name, unless a test has a variable of that name.
std::string python_name(const Brought& brought);

}  // namespace lossgate::ci
