// SPDX-License-Identifier: Apache-2.0
#include "ci/suggestion.h"

#include "corpora/nearest_name.h"

namespace lossgate::ci {

std::string nearest(std::string_view given, const std::vector<std::string>& known) {
  return corpora::nearest_name(given, known);
}

std::string unknown_name(std::string_view kind, std::string_view given,
                         const std::vector<std::string>& known) {
  std::string text = "unknown " + std::string(kind) + " '" + std::string(given.substr(0, 64)) + "'";
  const std::string meant = corpora::meant_text(given, known);
  if (!meant.empty()) return text + meant;
  text += "; known:";
  for (std::size_t i = 0; i < known.size(); ++i) text += (i ? ", " : " ") + known[i];
  return text;
}

}  // namespace lossgate::ci
