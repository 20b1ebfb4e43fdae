// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdint>
#include <exception>
#include <vector>

#include "properties/probes.h"

/// Experiments on the bytes of a message.
namespace lossgate::properties {
namespace {

/// Bytes that are tried, at most.
constexpr std::int64_t kMostBytes = 4096;

/// The formula's values, bit by bit in double; nothing where the case is to be refused.
std::vector<std::uint64_t> formula_of(const reference::Loss& loss, const Case& c,
                                      const Arithmetic& arithmetic) {
  std::vector<std::uint64_t> values;
  CaseStudy study(loss, c);
  if (study.refusal()) return values;
  study.for_each_expected(
      arithmetic, false, [&](std::size_t, std::int64_t, const reference::Tracked& x) {
        values.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(x.v)));
      });
  return values;
}

bool same(const LossResult& a, const LossResult& b) {
  return a.refusal.has_value() == b.refusal.has_value() &&
         std::ranges::equal(a.outputs, b.outputs, {}, &Output::tensor, &Output::tensor);
}

/// The case with another letter or digit at the place: brackets and commas stay what they are.
std::optional<Case> with_other_letter(Case c, const Field& message, std::int64_t index) {
  Tensor& bytes = c.batch.at(message.name);
  const auto byte = static_cast<int>(bytes.integer_at(index));
  if (!std::isalnum(byte)) return std::nullopt;
  bytes.set(index, byte == 'B' ? 'C' : 'B');
  return c;
}

}  // namespace

Opinion probe_message(Suspect& suspect) try {
  const auto& fields = suspect.signature().fields;
  const auto message = std::ranges::find(fields, Quantity::payload, &Field::quantity);
  if (message == fields.end()) return std::nullopt;
  const Case& given = suspect.given();
  const impl::Implementation& implementation = suspect.implementation();
  const Arithmetic arithmetic = implementation.arithmetic(float_dtype(suspect.signature(), given));
  const auto formula = formula_of(suspect.loss(), given, arithmetic);
  const LossResult answer = implementation.evaluate(suspect.signature(), given);
  const std::int64_t bytes = std::min(given.batch.at(message->name).size(), kMostBytes);
  const auto leaks = [&](const Case& other) {
    return formula_of(suspect.loss(), other, arithmetic) == formula &&
           !same(answer, implementation.evaluate(suspect.signature(), other));
  };
  const Diagnosis leak = {.cause = "masked data leaks",
                          .confidence = 0.9,
                          .because = "the answer changes with what the formula does not read"};
  Case without = given;  // what nobody should read
  for (std::int64_t i = 0; i < bytes; ++i) {
    const auto other = with_other_letter(given, *message, i);
    if (!other || formula_of(suspect.loss(), *other, arithmetic) != formula) continue;
    if (leaks(*other)) return leak;
    without.batch.at(message->name).set(i, 'A');
  }
  return leaks(without) ? Opinion(leak) : std::nullopt;
} catch (const std::exception&) {
  return std::nullopt;
}

}  // namespace lossgate::properties
