// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ci/brought.h"

/// How a test comes to the function that a subject names.
namespace lossgate::ci {

/// The lines that import it, from where the worker found it, without an absolute path: into a file
/// that lies in this folder, wherever it is run, or into lines that are typed in there.
enum class Written { as_file, as_lines };
std::string python_import(const Brought& brought, const std::string& folder, Written written);

/// What it is called by then: its own name, unless a test has a variable of that name.
std::string python_name(const Brought& brought);

}  // namespace lossgate::ci
