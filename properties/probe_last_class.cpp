// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "properties/probes.h"

namespace lossgate::properties {
namespace {

/// The field with the one label of each position.
const Field* label_of(const LossSignature& signature) {
  for (const Field& field : signature.fields) {
    if (field.quantity == Quantity::label && field.axes.size() == 2) return &field;
  }
  return nullptr;
}

/// The case with another class at each position that counts, by what is there.
template <class Other>
Case with_classes(Case c, const Field& label, Other other) {
  Tensor& tensor = c.batch.at(label.name);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::int64_t known = tensor.integer_at(i);
    if (known >= 0) tensor.set(i, static_cast<double>(other(i, known)));
  }
  return c;
}

}  // namespace

/// The answer is that with the last class taken for the one before it.
Opinion probe_last_class(Suspect& suspect) {
  const Field* label = label_of(suspect.signature());
  const auto plain = label ? suspect.plain_case() : std::nullopt;
  if (!plain || plain->shape[Axis::vocab] < 2) return std::nullopt;
  const std::int64_t last = plain->shape[Axis::vocab] - 1;
  // Not all, as a normaliser may lack its last class, too.
  const auto reading =
      suspect.read_if_made(with_classes(*plain, *label, [&](std::int64_t i, std::int64_t known) {
        return i % 2 == 0 ? last : known;
      }));
  if (!is_wrong(reading) || !reading->finite()) return std::nullopt;
  const auto is_it = [&](const Reading& each) {
    return each.answers(with_classes(each.given(), *label, [&](std::int64_t, std::int64_t known) {
      return known == last ? last - 1 : known;
    }));
  };
  if (!suspect.fits(*reading, is_it)) return std::nullopt;
  return Diagnosis{"class mistaken", 0.95,
                   "the answer is that with the last class taken for the one before it"};
}

}  // namespace lossgate::properties
