// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

/// For the tests of this folder: a file of what was last looked at, line by line.
namespace lossgate::properties {

/// Expects the lines of the file, and no other; its first lines begin with # and are its head.
/// Where something else was found, the failure shows the difference, which is what to review, and
/// the command that renews the file.
void expect_kept(const std::string& file, const std::set<std::string>& found);

/// Of this folder's testdata.
std::string given_table(const std::string& name);

}  // namespace lossgate::properties
