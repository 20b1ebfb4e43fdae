// SPDX-License-Identifier: Apache-2.0
// What an answer depends on beside the formula's own inputs: what was asked before, how tensors lie
// in memory, what multiplies the loss.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/case_facts.h"
#include "properties/probes.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

/// Exact in every format.
constexpr double kHalf = 0.5;

/// What losses are multiplied by: a sign, more than 1, and what 16 bits round.
constexpr std::pair<double, std::string_view> kMultiples[] = {
    {-1.0, "minus the loss"}, {3.0, "three times the loss"}, {0.1F, "a tenth of the loss"}};

/// Whether there are numbers of different sizes in it: those of one size may be at a limit.
bool has_sizes(const Tensor& tensor) {
  std::set<double> sizes;
  for (std::int64_t i = 0; i < tensor.size(); ++i) sizes.insert(std::fabs(tensor.at(i)));
  sizes.erase(0.0);
  return sizes.size() > 1;
}

/// Whether an input is another one after the call.
bool writes_inputs(const Reading& reading) { return !reading.result().mutated.empty(); }

/// Whether nothing is refused where nothing keeps a function from writing into its inputs, as each
/// number has a place of its own and no gradient is asked for, and it does write: into the given
/// ones or, as a 0 may be overwritten by 0, into plain ones. They are transposed, as who refuses
/// views would answer in one piece.
bool writes_where_it_may(const Suspect& suspect) {
  bool writes = false;
  for (const std::optional<Case>& c : {std::optional(suspect.given()), suspect.plain_case()}) {
    if (!c) continue;
    Case free = *c;
    free.layout = Layout::transposed;
    free.grad_mode = GradMode::none;
    const LossResult result = suspect.implementation().evaluate(suspect.signature(), free);
    if (result.refusal) return false;
    writes |= !result.mutated.empty();
  }
  return writes;
}

enum class Likeness { same, rounding, contradiction };

/// How near an answer is to another one to the same case. Two right ones are no further apart than
/// either may be off.
Likeness likeness(const Reading& first, const Reading& again) {
  Likeness found = Likeness::same;
  for (const ReadEntry& e : first.entries()) {
    const double x = again.result().find(first.outputs()[e.output].name)->at(e.index);
    if (x == e.actual || (std::isnan(x) && std::isnan(e.actual))) continue;
    if (!(std::fabs(x - e.actual) <= 2.0 * e.accepted)) return Likeness::contradiction;
    found = Likeness::rounding;
  }
  return found;
}

/// The field of which another one, in tensors that lie as those of the case just before, gets that
/// case's answer: whoever knows a tensor again by its address is right of what lay there first.
/// Empty where there is none.
std::string kept_by_place(const Suspect& suspect, const Case& c) {
  const LossSignature& signature = suspect.signature();
  const auto is_kept = [&](const Case& other) {
    if (!is_right(suspect.read(c))) return false;
    const auto reading = suspect.read_if_made(other);
    return is_wrong(reading) && reading->answers(c);
  };
  for (const Field& field : signature.fields) {
    if (is_kept(with_another_field(signature, c, field))) return field.name;
  }
  if (!has_positions(signature)) return "";
  const std::vector<bool> valid = valid_positions(signature, c);
  const auto last = std::find(valid.rbegin(), valid.rend(), true);
  if (last == valid.rend()) return "";
  Case shorter = c;
  mask_position(signature, shorter, valid.rend() - last - 1);
  if (!is_kept(shorter)) return "";
  return signature.mask.empty() ? signature.ignore_label : signature.mask;
}

}  // namespace

/// The given case is asked again, then a plain one twice, which has more that may vary, then the
/// given one once more. Bits alone explain no number that is wrong.
Opinion probe_state(Suspect& suspect) {
  const auto& given = suspect.as_given();
  if (!given) return std::nullopt;
  const auto ask_again = [&](const Reading& first) {
    const auto again = suspect.read(first.given());
    return again ? likeness(first, *again) : Likeness::same;
  };
  Likeness worst = ask_again(*given);
  if (const auto& plain = suspect.plain()) worst = std::max(worst, ask_again(*plain));
  worst = std::max(worst, ask_again(*given));
  if (worst == Likeness::contradiction) {
    return Diagnosis{"state between calls", 0.95,
                     "asked again the same case gets another answer, by more than rounding"};
  }
  if (worst == Likeness::same || !given->right()) return std::nullopt;
  return Diagnosis{"order of operations varies", 0.9,
                   "asked again the same case gets other bits, and all of them are right"};
}

/// The given case in one piece of memory; and where that is not wrong, a plain one in both. Each is
/// asked twice: chance is no reading of strides, and nor is what is kept from the case before.
/// Where tensors are contiguous what comes into a per-token loss may be one number expanded (rule
/// E12); within a buffer it is as many as terms.
Opinion probe_strides(Suspect& suspect) {
  const Layout layout = suspect.given().layout;
  const bool plain = layout == Layout::contiguous;
  const Layout other = plain ? Layout::offset : Layout::contiguous;
  const auto reads_as = [&](std::optional<Case> c, Layout given) {
    if (c) c->layout = given;
    return suspect.read(c);
  };
  for (const std::optional<Case>& c : {std::optional(suspect.given()), suspect.plain_case()}) {
    const auto differs = [&] {
      return is_wrong(reads_as(c, layout)) && is_right(reads_as(c, other));
    };
    if (!differs()) continue;
    Case there = *c;
    there.layout = other;
    if (const std::string kept = kept_by_place(suspect, there); !kept.empty()) {
      return Diagnosis{"state between calls", 0.95,
                       "with another " + kept +
                           ", where that of the case before lay, the answer is that case's"};
    }
    if (differs()) {
      if (const auto written = reads_as(c, layout); written && writes_inputs(*written)) {
        return Diagnosis{"input overwritten", 0.95,
                         "it writes into its inputs, and is right where each number of them has a "
                         "place of its own"};
      }
      return Diagnosis{"strides ignored", 0.95,
                       plain ? "the same numbers are right where nothing that comes in is expanded"
                             : "the same numbers in contiguous tensors are right"};
    }
  }
  return std::nullopt;
}

/// The given case where inputs can be written into. Plain cases of several sequences with padding,
/// and without any: what refuses both refuses all there is with these options.
Opinion probe_refusal(Suspect& suspect) {
  if (!suspect.as_given() && writes_where_it_may(suspect)) {
    return Diagnosis{"input overwritten", 0.95,
                     "it writes into its inputs, and has an answer where each number of them has a "
                     "place of its own and no gradient is asked for"};
  }
  const auto refuses = [&](const std::optional<Case>& c) {
    if (!c) return false;
    const auto refusal = suspect.implementation().evaluate(suspect.signature(), *c).refusal;
    return refusal && refusal->argument != impl::kNotComputed &&
           refusal->argument != impl::kNoResult;
  };
  if (!refuses(suspect.plain_case()) || !refuses(suspect.plain_case({.padding = false}))) {
    return std::nullopt;
  }
  return Diagnosis{
      "ordinary input refused", 0.95,
      "plain numbers, without an edge or a split, are refused with these options, too"};
}

/// The plain case as such, and with its loss multiplied by a half: a gradient that stays what it
/// is, bit for bit, has not heard of it. Where the given loss was multiplied and the plain gradient
/// is right: by what it is not.
Opinion probe_upstream(Suspect& suspect) {
  auto c = suspect.plain_case();
  const auto whole = suspect.read(c);
  if (!is_finite(whole)) return std::nullopt;
  const auto multiplied = [&](double upstream) {
    c->upstream = upstream;
    return suspect.read(c);
  };
  const auto half = multiplied(kHalf);
  if (!is_finite(half)) return std::nullopt;
  const bool ignored = std::ranges::any_of(whole->outputs(), [&](const OutputInfo& output) {
    if (output.kind != OutputKind::gradient) return false;
    const Tensor &one = *whole->result().find(output.name),
                 &other = *half->result().find(output.name);
    return one == other && has_sizes(one);
  });
  if (ignored) {
    return Diagnosis{"wrong upstream factor", 0.95,
                     "half the loss has the gradient of the whole one"};
  }
  const double given = suspect.given().upstream;
  if (given == 1.0 || !whole->right() || !is_wrong_in_gradients_alone(suspect.as_given())) {
    return std::nullopt;
  }
  std::vector<std::pair<double, std::string_view>> multiples(std::begin(kMultiples),
                                                             std::end(kMultiples));
  char given_multiple[32];
  std::snprintf(given_multiple, sizeof given_multiple, "%.6g times the loss", given);
  multiples.emplace_back(given, given_multiple);
  for (const auto& [upstream, multiple] : multiples) {
    const auto other = multiplied(upstream);
    if (!is_wrong_in_gradients_alone(other) || is_erratic(suspect, *other)) continue;
    return Diagnosis{"wrong upstream factor", 0.9,
                     "the gradient is right, that of " + std::string(multiple) + " is not"};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
