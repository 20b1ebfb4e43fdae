// SPDX-License-Identifier: Apache-2.0
#include "corpora/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace lossgate::corpora {
namespace {

// Insertions, deletions and replacements that turn one into the other (Levenshtein 1966).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// What papers call a loss, the loss that it is, and the options that make it this one: those of
/// the Python package, and what is said besides.
struct PaperName {
  std::string_view paper, loss, options;
};
constexpr std::string_view kPpo =
    "kl_penalty = 0, dual_clip = \"none\", log_ratio_clamp = \"none\"";
constexpr PaperName kPaperNames[] = {{"ppo", "grpo", kPpo},
                                     {"ppo_clip", "grpo", kPpo},
                                     {"gpg", "reinforce", ""},
                                     {"gspo", "grpo", "level = \"sequence\""},
                                     {"forward_kl", "jsd", "beta = 0"},
                                     {"reverse_kl", "jsd", "beta = 1"},
                                     {"value_loss", "value_clip", ""}};

}  // namespace

std::string nearest_name(std::string_view given, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 64;  // no name is longer, and the distance costs a product
  if (given.size() > kLongest) return "";
  std::string best;
  std::size_t smallest = std::max<std::size_t>(2, given.size() / 3) + 1;
  for (const std::string& name : known) {
    const std::size_t distance = edit_distance(given, name);
    if (distance < smallest) {
      smallest = distance;
      best = name;
    }
  }
  return best;
}

std::string meant_text(std::string_view given, const std::vector<std::string>& known) {
  for (const auto& [paper, loss, options] : kPaperNames) {
    if (given != paper || std::ranges::find(known, loss) == known.end()) continue;
    const std::string with = options.empty() ? "" : " with " + std::string(options);
    return "; that is '" + std::string(loss) + "'" + with;
  }
  const std::string meant = nearest_name(given, known);
  return meant.empty() ? "" : "; did you mean '" + meant + "'?";
}

}  // namespace lossgate::corpora
