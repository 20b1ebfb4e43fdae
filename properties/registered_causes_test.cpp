// SPDX-License-Identifier: Apache-2.0
// Rule G1: each implementation that is wrong on purpose, on the cases that are kept for its loss.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "corpora/files.h"
#include "impl/catalog.h"
#include "properties/fake_answer.h"

namespace lossgate::properties {
namespace {

/// What a variant's fault is called, and how often, until its cause has been named three times.
std::map<std::string, int> opinions(const impl::Implementation& variant) {
  std::map<std::string, int> named = {{variant.fault->cause, 0}};
  const std::string folder = LOSSGATE_SOURCE_DIR "/corpora/seeds/" + variant.loss;
  for (const auto& file : corpora::list_case_files(folder)) {
    const Case c = corpora::read_case_file(file, reference::find_signature);
    if (variant.unsupported(c) || named[variant.fault->cause] == 3) continue;
    const Diagnosis diagnosis = diagnosed(variant, c);
    // Where no experiment fits, what the property saw may be the cause all the same.
    const bool speaks = diagnosis.confidence > 0.0 || diagnosis.cause == variant.fault->cause;
    if (speaks) ++named[diagnosis.cause];
  }
  return named;
}

TEST(RegisteredFaults, AreCalledByTheirCauseWhereverAnExperimentSpeaks) {
  std::set<std::string> silent, other;
  int right = 0, all = 0;
  for (const impl::Implementation& variant : impl::catalog(false)) {
    if (!variant.fault || variant.fault->of_length) continue;  // no kept case is long
    const std::map<std::string, int> named = opinions(variant);
    int spoken = 0;
    for (const auto& [cause, count] : named) spoken += count;
    const int own = named.at(variant.fault->cause);
    if (spoken == 0) silent.insert(variant.loss + "." + variant.name);
    if (spoken > 0 && 2 * own <= spoken) other.insert(variant.loss + "." + variant.name);
    right += own, all += spoken;
  }
  // A clamp of each token where the sequence's is asked is an exponential that overflows, too. A
  // product of exponentials that underflows overflows where log-ratios are farther.
  EXPECT_EQ(other,
            (std::set<std::string>{"gmpo.product_of_weights", "grpo.token_clamp_not_sequence"}));
  EXPECT_GE(right, 0.95 * all);
  // Faults of edges (DPPO without its epsilon, of tokens that became certain), and of a history,
  // that no kept case has.
  EXPECT_LE(silent.size(), 21U) << testing::PrintToString(silent);
}

}  // namespace
}  // namespace lossgate::properties
