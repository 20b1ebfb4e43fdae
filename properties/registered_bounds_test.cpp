// SPDX-License-Identifier: Apache-2.0
// What the reference says of every kept case, beside what it said when somebody last looked: a rule
// that moves a value or a bound shows whose, and by how much.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "corpora/files.h"
#include "impl/catalog.h"
#include "properties/case_study.h"
#include "properties/fake_answer.h"
#include "properties/given_table.h"
#include "properties/plain_case.h"
#include "reference/reference.h"

namespace lossgate::properties {
namespace {

constexpr int kDigits = 5;

/// Numbers of one kind, added up; those that are not finite are counted.
struct Total {
  long double sum = 0.0L;
  int others = 0;

  void add(long double x) {
    if (std::isfinite(x)) {
      sum += std::fabs(x);
    } else {
      ++others;
    }
  }
};

/// Every entry of one output.
struct Entries {
  Total v, err, peak, half;

  template <class Expected>
  void add(const Expected& x) {
    v.add(x.v);
    err.add(x.err);
    peak.add(x.peak);
    half.add(x.half);
  }
};

std::string text_of(const Total& total, int digits = kDigits) {
  std::ostringstream text;
  text << std::setprecision(std::min(digits, kDigits));
  text << static_cast<double>(digits > 0 ? total.sum : 0.0L);
  if (total.others > 0) text << "+" << total.others << "inf";
  return text.str();
}

/// As many digits as the bound leaves: those below are another machine's to choose.
int digits_above(const Total& err, const Total& v) {
  if (err.sum == 0.0L) return kDigits;
  return v.sum < err.sum ? 0 : static_cast<int>(std::log10(v.sum / err.sum)) + 1;
}

std::string text_of(const CaseStudy& study, const std::vector<Entries>& outputs) {
  std::string text;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const auto& [v, err, peak, half] = outputs[o];
    text += " | " + study.outputs()[o].name + " " + text_of(v, digits_above(err, v));
    for (const Total& part : {err, peak, half}) text += " " + text_of(part);
  }
  return text;
}

std::string exactly(CaseStudy& study, const Arithmetic& arithmetic, bool split) {
  std::vector<Entries> outputs(study.outputs().size());
  study.for_each_expected(
      arithmetic, split,
      [&](std::size_t o, std::int64_t, const reference::Tracked& x) { outputs[o].add(x); });
  return text_of(study, outputs);
}

/// As double has it.
std::string filtered(CaseStudy& study, const Arithmetic& arithmetic, bool split) {
  const reference::Approximation* found = study.approximation(arithmetic, split);
  if (!found) return " | left to long double";
  std::vector<Entries> outputs(found->size());
  for (std::size_t o = 0; o < found->size(); ++o) {
    for (std::size_t i = 0; i < (*found)[o].size(); ++i) outputs[o].add((*found)[o][i]);
  }
  return text_of(study, outputs);
}

/// How the sound implementations of a loss compute, each way once, by the first that does.
std::vector<std::pair<std::string, Arithmetic>> arithmetics(const std::string& loss, const Case& c,
                                                            Dtype dtype) {
  std::vector<std::pair<std::string, Arithmetic>> ways;
  for (const impl::Implementation& candidate : impl::catalog(false)) {
    if (candidate.loss != loss || candidate.fault) continue;
    if (candidate.unsupported && candidate.unsupported(c)) continue;
    const Arithmetic arithmetic = candidate.arithmetic(dtype);
    const auto same = [&](const auto& way) { return way.second == arithmetic; };
    if (std::ranges::none_of(ways, same)) ways.emplace_back(candidate.name, arithmetic);
  }
  return ways;
}

/// What the reference says of the case under one of the arithmetics, and double, where it is asked.
void describe(const reference::Loss& loss, const std::string& name, const Case& c, std::size_t most,
              std::set<std::string>& lines) {
  CaseStudy study(loss, c);
  const std::string of = loss.signature.id + "/" + name + " | ";
  if (study.refusal()) {
    lines.insert(of + "refused: " + study.refusal()->message);
    return;
  }
  const bool by_position = !reference::approximators_of(loss).empty();
  auto ways = arithmetics(loss.signature.id, c, float_dtype(loss.signature, c));
  ways.resize(std::min(ways.size(), most));
  for (const auto& [way, arithmetic] : ways) {
    for (const bool split : {false, true}) {
      if (split && c.split.whole()) continue;
      const std::string by = of + way + (split ? ", split" : "");
      lines.insert(by + exactly(study, arithmetic, split));
      if (by_position) lines.insert(by + ", filtered" + filtered(study, arithmetic, split));
    }
  }
}

/// What else the option could say: each choice, and numbers on either side of 1.
std::vector<OptionValue> values_of(const Option& option) {
  std::vector<OptionValue> values(option.choices.begin(), option.choices.end());
  if (option.nullable) values.emplace_back(None{});
  if (option.kind == Option::Kind::flag) values.insert(values.end(), {0.0, 1.0});
  if (option.kind == Option::Kind::integer) values.emplace_back(std::max(option.low, 2.0));
  if (option.kind == Option::Kind::real) {
    for (const double x : {0.25, 1.5}) values.emplace_back(std::clamp(x, option.low, option.high));
  }
  std::erase(values, option.standard);
  return values;
}

std::string text_of(const OptionValue& value) {
  if (const auto* choice = std::get_if<std::string>(&value)) return *choice;
  const auto* number = std::get_if<double>(&value);
  std::ostringstream text;
  if (number) text << *number;
  return number ? text.str() : "none";
}

/// Ordinary numbers under the standard options, in each dtype, under each other reduction, and each
/// other value of one option; under the standard ones farther from each other, and with a sequence
/// of which nothing counts.
std::map<std::string, Case> ordinary_cases(const LossSignature& signature) {
  const Case standard = ordinary_case(signature.id, Dtype::f32);
  std::map<std::string, Case> cases = {{"standard", standard}};
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f64}) {
    cases[std::string(name(dtype))] = ordinary_case(signature.id, dtype);
  }
  for (const Reduction reduction : signature.reductions) {
    Case& c = cases[std::string(name(reduction))] = standard;
    c.spec.reduction = reduction;
  }
  for (const Option& option : signature.options) {
    for (const OptionValue& value : values_of(option)) {
      Case& c = cases[option.name + "=" + text_of(value)] = standard;
      c.spec.set(option.name, value);
    }
  }
  const Plain far{.spread = 8.0, .logit_spread = 20.0}, empty{.empty_row = true};
  cases["far apart"] = plain_case(signature, standard, far).value();
  cases["empty row"] = plain_case(signature, standard, empty).value();
  return cases;
}

TEST(RegisteredLosses, HaveTheValuesAndBoundsOfTheTable) {
  if (!reference::kRealIsWiderThanDouble) GTEST_SKIP() << "the table has long double's digits";
  constexpr std::size_t kEvery = 1000;
  std::set<std::string> lines;
  for (const reference::Loss& loss : reference::catalog()) {
    const std::string folder = LOSSGATE_SOURCE_DIR "/corpora/seeds/" + loss.signature.id;
    for (const auto& file : corpora::list_case_files(folder)) {
      const Case c = corpora::read_case_file(file, reference::find_signature);
      describe(loss, file.stem().string(), c, kEvery, lines);
    }
    const auto is_message = [](const Field& field) { return field.quantity == Quantity::payload; };
    if (std::ranges::any_of(loss.signature.fields, is_message)) continue;  // has no numbers to draw
    for (const auto& [name, c] : ordinary_cases(loss.signature)) describe(loss, name, c, 1, lines);
  }
  expect_kept(given_table("bounds.txt"), lines);
}

}  // namespace
}  // namespace lossgate::properties
