// SPDX-License-Identifier: Apache-2.0
#include "fuzz/transplant.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/spec/masked.h"

namespace lossgate::fuzz {

Region::Region(const Case& c, bool all)
    : sequences_(std::max<std::int64_t>(c.shape[Axis::sequences], 0)),
      tokens_(std::max<std::int64_t>(c.shape[Axis::tokens], 0)),
      in_(static_cast<std::size_t>(sequences_ * tokens_), all) {}

Region valid_region(const LossSignature& signature, const Case& c) {
  Region region(c, true);
  const std::vector<bool> valid = valid_positions(signature, c);
  for (std::int64_t s = 0; s < region.sequences(); ++s) {
    for (std::int64_t t = 0; t < region.tokens(); ++t) {
      region.set(s, t, valid[static_cast<std::size_t>(s * region.tokens() + t)]);
    }
  }
  return region;
}

void copy_positions(const Region& region, const Tensor& from, std::int64_t from_tokens, Tensor& to,
                    std::int64_t to_tokens) {
  const std::int64_t positions = region.sequences() * region.tokens();
  if (positions == 0 || to.size() == 0) return;
  const std::int64_t each = to.size() / (to.extents[0] * to_tokens);
  const std::size_t bytes = static_cast<std::size_t>(each) * size_of(to.dtype);
  for (std::int64_t s = 0; s < std::min(from.extents[0], to.extents[0]); ++s) {
    for (std::int64_t t = 0; t < std::min(from_tokens, to_tokens); ++t) {
      if (!region.has(s, t)) continue;
      std::memcpy(to.element((s * to_tokens + t) * each),
                  from.element((s * from_tokens + t) * each), bytes);
    }
  }
}

bool is_alike(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.extents == b.extents;
}

bool has_like_rows(const Field& field, const Tensor& a, const Tensor& b) {
  if (!is_positional(field)) return is_alike(a, b);
  return a.dtype == b.dtype && a.extents.size() == b.extents.size() &&
         std::equal(a.extents.begin() + 2, a.extents.end(), b.extents.begin() + 2);
}

bool shape_follows_data(const LossSignature& signature) { return signature.has_axis(Axis::bytes); }

Region common_region(const LossSignature& signature, const Case& a, const Case& b) {
  const Region of_a = valid_region(signature, a), of_b = valid_region(signature, b);
  Region both(b, false);
  for (std::int64_t s = 0; s < both.sequences(); ++s) {
    for (std::int64_t t = 0; t < both.tokens(); ++t) {
      both.set(s, t, of_a.has(s, t) && of_b.has(s, t));
    }
  }
  return both;
}

void take(const Field& field, const Case& from, const Region& region, Case& to) {
  Tensor& target = to.batch.at(field.name);
  const Tensor& source = from.batch.at(field.name);
  if (!has_like_rows(field, source, target)) return;
  if (is_positional(field)) {
    copy_positions(region, source, from.shape[Axis::tokens], target, to.shape[Axis::tokens]);
  } else {
    target = source;
  }
}

bool may_stand(const LossSignature& signature, const Field& field, const Case& c,
               const LossSpec& spec) {
  const bool legal = infinity_of(field, spec) == Infinity::legal;
  if (legal || infinity_of(field, c.spec) != Infinity::legal) return true;
  const Tensor& tensor = c.batch.at(field.name);
  const std::vector<bool> valid = valid_positions(signature, c);
  const bool has_positions = is_positional(field) && !valid.empty();
  const std::int64_t each = has_positions ? tensor.size() / std::ssize(valid) : 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const bool counts = each == 0 || valid[static_cast<std::size_t>(i / each)];
    if (counts && std::isinf(tensor.at(i))) return false;
  }
  return true;
}

bool accepts(const LossSignature& signature, const Case& c, const LossSpec& spec) {
  const auto stands = [&](const Field& field) { return may_stand(signature, field, c, spec); };
  if (!std::ranges::all_of(signature.fields, stands)) return false;
  if (allows_empty_rows(signature, spec)) return true;
  const std::vector<bool> valid = valid_positions(signature, c);
  return std::ranges::none_of(valid, [](bool v) { return v; }) ||
         !has_empty_sequence(valid, c.shape[Axis::sequences]);
}

}  // namespace lossgate::fuzz
