// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "properties/output_layer.h"
#include "properties/probes.h"
#include "properties/transforms.h"

namespace lossgate::properties {
namespace {

/// Vocabularies that blocks do not fill: those of a few classes, and of up to 128.
constexpr std::int64_t kOddFew = 7, kOddMany = 131;
/// So many classes that are left out are looked for.
constexpr std::int64_t kMostLost = 5;
/// Below all others a logit whose probability is 0.
constexpr double kAsGoodAsImpossible = -2000.0;

bool is_logit(const Field& field) {
  return field.quantity == Quantity::logit && !field.axes.empty() &&
         field.axes.back() == Axis::vocab;
}

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

/// The case with so many of the last classes impossible, or as good as that where its one position
/// has logits that a layer makes.
Case without_last(const LossSignature& signature, Case c, std::int64_t lost) {
  const std::int64_t vocab = c.shape[Axis::vocab];
  for (const Field& field : signature.fields) {
    if (!is_logit(field)) continue;
    Tensor& tensor = c.batch.at(field.name);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      if (i % vocab >= vocab - lost) tensor.set(i, -HUGE_VAL);
    }
  }
  for (const OutputLayer& layer : output_layers(signature)) {
    for (std::int64_t last = vocab - lost; last < vocab; ++last) {
      set_logit(c, layer, last, kAsGoodAsImpossible);
    }
  }
  return c;
}

/// How many of the last classes the answer is without, so that two are left; 0 where none.
std::int64_t lost_classes(const Suspect& suspect, const Reading& reading) {
  const std::int64_t most = std::min(kMostLost, reading.given().shape[Axis::vocab] - 2);
  for (std::int64_t lost = 1; lost <= most; ++lost) {
    const auto is_it = [&](const Reading& each) {
      const auto entries = each.beside(without_last(suspect.signature(), each.given(), lost));
      return entries.size() == each.entries().size() &&
             std::ranges::none_of(entries, &ReadEntry::wrong);
    };
    if (suspect.fits(reading, is_it)) return lost;
  }
  return 0;
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

/// The answer is that without some of the last classes, where every label is the first one.
Opinion probe_lost_classes(Suspect& suspect) {
  const LossSignature& signature = suspect.signature();
  const bool made = !output_layers(signature).empty();
  if (!made && std::ranges::none_of(signature.fields, is_logit)) return std::nullopt;
  const Field* label = label_of(signature);
  const Plain few{.few = {Axis::vocab}, .at_most = kOddFew},
      few_of_one{.length = {{Axis::vocab, kOddFew}}}, many{.length = {{Axis::vocab, kOddMany}}};
  for (const Plain& plain : {made ? few_of_one : few, many}) {
    auto c = suspect.plain_case(plain);
    if (c && made) c = batch_of(signature, *c, {0});
    if (c && label) {
      c = with_classes(std::move(*c), *label, [](std::int64_t, std::int64_t) { return 0; });
    }
    const auto reading = suspect.read_if_made(c);
    if (!is_wrong(reading) || !reading->finite()) continue;
    const std::int64_t lost = lost_classes(suspect, *reading);
    if (lost == 0) continue;
    const std::string which = lost == 1 ? "" : std::to_string(lost) + " ";
    return Diagnosis{"remainder dropped", 0.95,
                     "the answer is that without the last " + which + "of " +
                         std::to_string(c->shape[Axis::vocab]) + " classes"};
  }
  return std::nullopt;
}

}  // namespace lossgate::properties
