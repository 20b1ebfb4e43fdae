// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lossgate::report {

/// A file that is built into the page, and its SHA-256 in hexadecimal, by which the page's
/// content-security policy lets it in.
struct Asset {
  std::string_view text;
  std::string_view sha256;
};

Asset style();          ///< page.css
Asset script();         ///< page.js
Asset chart_library();  ///< d3, with its licence

}  // namespace lossgate::report
