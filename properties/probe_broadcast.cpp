// SPDX-License-Identifier: Apache-2.0
// Two shapes that broadcast to a matrix, (n, 1) and (n): every row meets every other one.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "properties/agreement.h"
#include "properties/probes.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

/// Plain cases of other numbers: the loss alone is compared, and one may agree by chance.
constexpr double kSpreads[] = {2.0, 1.0};
/// Subsets of more fields are too many; no loss has as many.
constexpr std::size_t kMostFields = 6;
/// What meets the others tells nothing where the loss is the same: it is another one where it is
/// off by so many times what may be wrong with both.
constexpr double kClear = 8.0;

/// The same numbers with each position in a sequence of its own; nothing where a field has one
/// number for a sequence.
std::optional<Case> of_single_positions(const LossSignature& signature, const Case& c) {
  if (c.shape[Axis::tokens] < 2) return std::nullopt;
  Case single = c;
  single.shape[Axis::sequences] *= c.shape[Axis::tokens];
  single.shape[Axis::tokens] = 1;
  for (const Field& field : signature.fields) {
    if (!has_rows(field.axes)) continue;
    if (!is_positional(field)) return std::nullopt;
    single.batch.at(field.name).extents = single.shape.of(field.axes);
  }
  return single;
}

/// What may have another shape than the rest.
std::vector<std::string> row_fields(const LossSignature& signature, const Case& c) {
  std::vector<std::string> names;
  for (const Field& field : signature.fields) {
    const bool numbers = is_float(c.batch.at(field.name).dtype) && field.name != signature.mask;
    if (numbers && has_rows(field.axes) && !field.absent) names.push_back(field.name);
  }
  return names;
}

/// Every sequence beside every one: for each choice of fields a batch of all pairs, where those
/// have the second one's numbers and the others the first one's.
std::vector<Case> all_pairs(const LossSignature& signature, const Case& c) {
  const std::vector<std::string> names = row_fields(signature, c);
  if (names.size() > kMostFields) return {};
  const std::int64_t rows = c.shape[Axis::sequences];
  std::vector<std::int64_t> first, second;
  for (std::int64_t pair = 0; pair < rows * rows; ++pair) {
    first.push_back(pair / rows);
    second.push_back(pair % rows);
  }
  const Case ones = batch_of(signature, c, first), others = batch_of(signature, c, second);
  std::vector<Case> cases;
  // The first field stays: the choice of all that are left is the same pairs.
  for (std::size_t chosen = 2; chosen < std::size_t{1} << names.size(); chosen += 2) {
    Case pairs = ones;
    for (std::size_t i = 1; i < names.size(); ++i) {
      if (chosen >> i & 1U) pairs.batch.at(names[i]) = others.batch.at(names[i]);
    }
    cases.push_back(std::move(pairs));
  }
  return cases;
}

/// The loss of all pairs, as the formula has it.
struct Expected {
  double value, accepted;
};

std::optional<Expected> loss_of(const Suspect& suspect, const Arithmetic& arithmetic,
                                const Case& pairs) {
  CaseStudy study(suspect.loss(), pairs);
  if (study.refusal()) return std::nullopt;
  std::optional<Expected> loss;
  study.for_each_expected(
      arithmetic, false,
      [&](std::size_t o, std::int64_t, const reference::Tracked& x) {
        const OutputInfo& output = study.outputs()[o];
        if (output.kind != OutputKind::loss) return;
        loss = {static_cast<double>(x.v), largest_accepted(arithmetic, output, x)};
      },
      CaseStudy::Wanted::values);
  return loss;
}

/// The batches of all pairs whose loss, which is another one than the right one, is answered, or so
/// many times that where a sum over all pairs is divided by the single ones.
std::set<std::size_t> answered(const Suspect& suspect, const Reading& reading,
                               const std::vector<Case>& pairs) {
  const auto& entries = reading.entries();
  const auto own = std::ranges::find_if(
      entries, [&](const ReadEntry& e) { return reading.kind(e) == OutputKind::loss; });
  const auto fits = [&](const Case& c) {
    if (own == entries.end() || !own->wrong()) return false;
    const auto all = loss_of(suspect, reading.arithmetic(), c);
    if (!all) return false;
    const double apart = std::fabs(all->value - own->expected);
    if (!(apart > kClear * (own->accepted + all->accepted))) return false;
    const double single_ones = std::sqrt(static_cast<double>(c.shape[Axis::sequences]));
    return std::ranges::any_of(std::vector{1.0, single_ones}, [&](double times) {
      const double accepted = own->accepted + times * all->accepted;
      return std::isfinite(accepted) && std::fabs(own->actual - times * all->value) <= accepted;
    });
  };
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (fits(pairs[i])) found.insert(i);
  }
  return found;
}

}  // namespace

/// The loss is that of all pairs of sequences, or of positions, in case after case.
Opinion probe_broadcast(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  const std::int64_t tokens = suspect.given().shape[Axis::tokens] == 1 ? 1 : 2;
  std::optional<std::set<std::size_t>> always;
  for (const double spread : kSpreads) {
    const auto reading = suspect.read(suspect.plain_case(
        {.padding = false, .spread = spread, .few = {Axis::tokens}, .at_most = tokens}));
    if (!is_wrong(reading) || !reading->finite()) return std::nullopt;
    std::vector<Case> pairs = all_pairs(signature, reading->given());
    if (const auto single = of_single_positions(signature, reading->given())) {
      for (Case& c : all_pairs(signature, *single)) pairs.push_back(std::move(c));
    }
    std::set<std::size_t> now = answered(suspect, *reading, pairs);
    if (always) std::erase_if(now, [&](std::size_t i) { return !always->contains(i); });
    if (now.empty()) return std::nullopt;
    always = std::move(now);
  }
  return Diagnosis{"broadcast to a matrix", 0.95,
                   "the loss is that of every row beside every other one"};
}

}  // namespace lossgate::properties
