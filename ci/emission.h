// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ci/brought.h"
#include "properties/property.h"

namespace lossgate::ci {

/// A case on which a Python function of the user's fails, to be said without lossgate: in torch and
/// the user's module alone.
struct Emission {
  const Brought* brought = nullptr;
  const properties::Property* property = nullptr;
  Case c;
  properties::Violation violation;
  properties::Diagnosis diagnosis;
  std::string code;     ///< the guilty line, where there is one
  std::string loss_in;  ///< where in what the function returns: "", "[0]"
};

/// Why no test can be written, or empty: the property, or the function, is not one that a few
/// lines of Python can ask.
std::string cannot_emit(const Emission& emission);

/// The same of what is left of the case once it is minimal: nothing that the text could not show.
std::string cannot_say(const Emission& emission);

/// A file with one pytest function of at most 25 lines, that fails now and passes once the function
/// is mended. `folder` is where it will lie: the function's own folder goes unsaid.
std::string test_text(const Emission& emission, const std::string& folder);

/// A script that prints what is seen and what should be, and exits with 1 where they differ.
std::string script_text(const Emission& emission, const std::string& folder);

/// A report in Markdown, the script included, which is to be run where the subject's file lies:
/// whoever reads it knows no other folder.
std::string issue_text(const Emission& emission, const std::string& folder);

}  // namespace lossgate::ci
