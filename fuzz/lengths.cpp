// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "fuzz/hash.h"
#include "fuzz/long_case.h"

namespace lossgate::fuzz {
namespace {

/// The next of them at each turn, so that a gate asks each: a count may be wrong in one alone.
std::optional<Reduction> reduction_of(std::uint64_t root_seed, const LossSignature& signature,
                                      std::size_t turn) {
  const auto& reductions = signature.reductions;
  if (reductions.empty()) return std::nullopt;
  return reductions[((root_seed ^ hash_of(signature.id)) + turn) % reductions.size()];
}

/// Where logits may be ruled out, and no list names tokens.
bool can_be_ruled_out(const LossSignature& signature, const Tier& tier) {
  if (tier.axis != Axis::vocab || signature.has_axis(Axis::support)) return false;
  return std::ranges::any_of(signature.fields, is_filtered);
}

bool can_be_far(const LossSignature& signature, const Tier& tier) {
  const auto makes = [](Quantity q) { return q == Quantity::logit || q == Quantity::hidden_state; };
  return tier.axis == Axis::vocab && std::ranges::any_of(signature.fields, makes, &Field::quantity);
}

bool is_masked(const LossSignature& signature) {
  return !signature.mask.empty() || !signature.ignore_label.empty();
}

/// Along sequences and tokens, where something masks them.
bool can_be_thin(const LossSignature& signature, const Tier& tier) {
  if (!is_masked(signature)) return false;
  return tier.axis == Axis::sequences || (tier.axis == Axis::tokens && !signature.prefix_mask);
}

/// In turn, where blocks are full. A row of logits is alone, or nearly: nothing of it is masked.
std::vector<LongForm> full_forms(const LossSignature& signature, const Tier& tier) {
  std::vector<LongForm> forms = {LongForm::plain, LongForm::whole, LongForm::other_option};
  if (tier.axis == Axis::tokens && is_masked(signature)) forms[0] = LongForm::padded;
  if (tier.axis != Axis::vocab) return forms;
  std::erase(forms, LongForm::whole);
  if (can_be_far(signature, tier)) forms.push_back(LongForm::far);
  if (can_be_ruled_out(signature, tier)) forms.push_back(LongForm::ruled_out);
  return forms;
}

/// Where chunks of thousands leave something over that is no small part.
Tier amid(const Tier& tier) {
  const std::int64_t steps = (tier.last - tier.first) / tier.every;
  if (steps < 3) return tier;
  return {tier.axis, tier.first + steps / 3 * tier.every, tier.last - tier.every, tier.every};
}

}  // namespace

std::vector<Length> lengths_of(std::uint64_t root_seed, const LossSignature& signature,
                               std::span<const Dtype> dtypes) {
  std::vector<Length> lengths;
  if (dtypes.empty()) return lengths;
  std::size_t option = root_seed % (signature.options.size() + 1);
  const auto add = [&](const Tier& extents, LongForm form) {
    const std::size_t turn = lengths.size(), rounds = turn / dtypes.size();
    // A round begins with the next dtype, or odd tiers would have every second one alone. What few
    // lose shows best in the finest.
    const Dtype dtype = form == LongForm::thin
                            ? *std::ranges::min_element(dtypes, {}, unit_roundoff)
                            : dtypes[(root_seed + turn + rounds) % dtypes.size()];
    lengths.push_back({extents, dtype, form, reduction_of(root_seed, signature, turn)});
    if (form == LongForm::other_option) lengths.back().option = option++;
  };
  const auto longest = longest_tiers(signature);
  for (const Tier& each : longest) add(each, LongForm::plain);
  for (const Tier& each : longest) {
    if (can_be_far(signature, each)) add(each, LongForm::far);
    if (can_be_ruled_out(signature, each)) add(each, LongForm::ruled_out);
  }
  for (const Tier& each : longest) {
    if (!signature.options.empty()) add(each, LongForm::other_options);
    if (each.axis == Axis::tokens && is_masked(signature)) add(each, LongForm::padded);
  }
  constexpr LongForm kOdd[] = {LongForm::plain, LongForm::other_option};
  std::uint64_t odd = root_seed, full = root_seed, thousands = root_seed;
  for (const Tier& tier : tiers(signature)) {
    if (tier.every == 2) {
      add(tier, kOdd[odd++ % std::size(kOdd)]);
      add(tier, LongForm::hostile);
      continue;
    }
    std::vector<LongForm> forms = full_forms(signature, tier);
    if (tier.first > kThousands && !signature.options.empty()) {
      // A path of its own for one option that is off, say, is taken at production's lengths.
      if (thousands++ % 2 == 0) {
        add(amid(tier), LongForm::other_option);
        continue;
      }
      std::erase(forms, LongForm::other_option);
    }
    add(tier, forms[full++ % forms.size()]);
  }
  for (const Tier& each : crossed_tiers(signature)) add(each, LongForm::crossed);
  for (const Tier& each : longest) {
    if (can_be_thin(signature, each)) add(each, LongForm::thin);
  }
  return lengths;
}

}  // namespace lossgate::fuzz
