// SPDX-License-Identifier: Apache-2.0
// What every probe says of each implementation that is wrong on purpose, beside what it said when
// somebody last looked: one that falls silent is a change, whether or not a surer one speaks.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "corpora/files.h"
#include "impl/catalog.h"
#include "properties/diagnosis.h"
#include "properties/fake_answer.h"
#include "properties/given_table.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

const std::pair<const char*, Opinion (*)(Suspect&)> kProbes[] = {
    {"probe_baseline", probe_baseline},
    {"probe_behind_mask", probe_behind_mask},
    {"probe_broadcast", probe_broadcast},
    {"probe_bound", probe_bound},
    {"probe_cap", probe_cap},
    {"probe_cancelled_deviation", probe_cancelled_deviation},
    {"probe_constant_in_logarithm", probe_constant_in_logarithm},
    {"probe_dead_clamp", probe_dead_clamp},
    {"probe_dead_gradient", probe_dead_gradient},
    {"probe_deviation", probe_deviation},
    {"probe_differences", probe_differences},
    {"probe_early_mean", probe_early_mean},
    {"probe_emptied_row", probe_emptied_row},
    {"probe_empty", probe_empty},
    {"probe_exponents", probe_exponents},
    {"probe_factor", probe_factor},
    {"probe_fields", probe_fields},
    {"probe_filtered_gradient", probe_filtered_gradient},
    {"probe_format", probe_format},
    {"probe_gaps", probe_gaps},
    {"probe_groups", probe_groups},
    {"probe_gradient", probe_gradient},
    {"probe_kinds", probe_kinds},
    {"probe_floor", probe_floor},
    {"probe_last_class", probe_last_class},
    {"probe_length", probe_length},
    {"probe_lone", probe_lone},
    {"probe_lost_classes", probe_lost_classes},
    {"probe_refusal", probe_refusal},
    {"probe_logits", probe_logits},
    {"probe_masked_terms", probe_masked_terms},
    {"probe_message", probe_message},
    {"probe_needed_options", probe_needed_options},
    {"probe_options", probe_options},
    {"probe_other_number", probe_other_number},
    {"probe_own_overflow", probe_own_overflow},
    {"probe_repaired_value", probe_repaired_value},
    {"probe_positions", probe_positions},
    {"probe_power", probe_power},
    {"probe_rounding", probe_rounding},
    {"probe_rows", probe_rows},
    {"probe_sign", probe_sign},
    {"probe_single", probe_single},
    {"probe_split", probe_split},
    {"probe_statistics", probe_statistics},
    {"probe_state", probe_state},
    {"probe_steps", probe_steps},
    {"probe_strides", probe_strides},
    {"probe_sum", probe_sum},
    {"probe_tail", probe_tail},
    {"probe_through_limit", probe_through_limit},
    {"probe_upstream", probe_upstream},
    {"probe_weights", probe_weights},
};

/// Of how many cases somebody says the same.
using Opinions = std::map<std::string, int>;

std::string text_of(const std::string& who, const Diagnosis& says) {
  std::ostringstream text;
  text << who << " | " << says.cause;
  if (says.confidence > 0.0) text << " " << says.confidence << " | " << says.because;
  return text.str();
}

/// What the property that is violated says, each probe by itself, and `diagnose` with all of them.
Opinions opinions(const impl::Implementation& variant) {
  Opinions result;
  const auto ask = [&](CaseStudy& study, const Property& property, const Violation& violation) {
    ++result[text_of(property.name, {violation.cause, 0.0, ""})];
    ++result[text_of("diagnose", diagnose(study, variant, property, violation))];
    Suspect suspect(study, variant, violation);
    for (const auto& [name, probe] : kProbes) {
      if (const Opinion opinion = probe(suspect)) ++result[text_of(name, *opinion)];
    }
  };
  const std::string folder = LOSSGATE_SOURCE_DIR "/corpora/seeds/" + variant.loss;
  for (const auto& file : corpora::list_case_files(folder)) {
    const Case c = corpora::read_case_file(file, reference::find_signature);
    if (!variant.unsupported(c)) ask_first_violation(variant, c, ask);
  }
  return result;
}

std::set<std::string> lines_found() {
  std::set<std::string> lines;
  for (const impl::Implementation& variant : impl::catalog(false)) {
    if (!variant.fault) continue;
    for (const auto& [says, cases] : opinions(variant)) {
      std::ostringstream line;
      line << variant.loss << "." << variant.name << " | " << says << " | " << cases;
      lines.insert(line.str());
    }
  }
  return lines;
}

TEST(RegisteredFaults, AreGivenTheOpinionsOfTheTable) {
  expect_kept(given_table("opinions.txt"), lines_found());
}

TEST(RegisteredFaults, AreShownToEveryProbe) {
  std::set<std::string> declared, asked;
  const std::size_t from = std::string("Opinion ").size();
  std::ifstream header(LOSSGATE_SOURCE_DIR "/properties/probes.h");
  for (std::string line; std::getline(header, line);) {
    if (line.starts_with("Opinion probe_"))
      declared.insert(line.substr(from, line.find('(') - from));
  }
  for (const auto& [name, probe] : kProbes) asked.insert(name);
  EXPECT_EQ(asked, declared);
}

}  // namespace
}  // namespace lossgate::properties
