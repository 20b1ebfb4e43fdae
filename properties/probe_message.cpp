// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "properties/probes.h"

/// Experiments on the bytes of a message.
namespace lossgate::properties {
namespace {

/// Parts of messages that are tried, at most: what is longer is cut into larger ones.
constexpr std::int64_t kMostParts = 2048;

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

/// What texts of numbers are made of: brackets and commas stay what they are.
bool is_letter(std::int64_t byte) {
  return byte == '+' || byte == '/' || std::isalnum(static_cast<int>(byte)) != 0;
}

/// Bytes of the messages, one row after the other.
struct Part {
  std::int64_t from = 0, to = 0;
};

/// Every letter of the part becomes that one, and that one itself `instead`.
void write(Tensor& bytes, const Part& part, char letter, char instead) {
  for (std::int64_t i = part.from; i < part.to; ++i) {
    const std::int64_t byte = bytes.integer_at(i);
    if (is_letter(byte)) bytes.set(i, byte == letter ? instead : letter);
  }
}

/// Looks for parts that may be anything: of the halves of one that may not, again.
class Unread {
 public:
  Unread(const reference::Loss& loss, const Case& c, const Arithmetic& arithmetic,
         std::string message)
      : loss_(loss),
        case_(c),
        arithmetic_(arithmetic),
        message_(std::move(message)),
        formula_(formula_of(loss, c, arithmetic)) {
    const std::int64_t bytes = c.batch.at(message_).size();
    least_ = (bytes + kMostParts - 1) / kMostParts;
    if (formula_.empty()) return;  // what is to be refused may be anything
    look({0, bytes});
    for (Part& part : parts_) extend(part, bytes);
  }

  /// The case with that letter in all of them; nothing where there are none, or the formula reads
  /// what several of them say together.
  std::optional<Case> filled(char letter) const {
    Case other = case_;
    for (const Part& part : parts_) write(other.batch.at(message_), part, letter, letter);
    return !parts_.empty() && is_same_formula(other) ? std::optional(std::move(other))
                                                     : std::nullopt;
  }

 private:
  bool is_same_formula(const Case& other) const {
    return formula_of(loss_, other, arithmetic_) == formula_;
  }

  void look(const Part& part) {
    Case other = case_;
    Tensor& bytes = other.batch.at(message_);
    write(bytes, part, 'B', 'C');
    if (bytes == case_.batch.at(message_)) return;
    if (is_same_formula(other)) return parts_.push_back(part);
    const std::int64_t half = part.from + (part.to - part.from) / 2;
    if (part.to - part.from <= least_) return;
    look({part.from, half});
    look({half, part.to});
  }

  /// Letter by letter, as far as the formula does not read on either side.
  void extend(Part& part, std::int64_t bytes) const {
    const auto may_be_anything = [&](std::int64_t at) {
      Case other = case_;
      write(other.batch.at(message_), {at, at + 1}, 'B', 'C');
      return is_letter(case_.batch.at(message_).integer_at(at)) && is_same_formula(other);
    };
    const std::int64_t first = std::max<std::int64_t>(part.from - least_, 0),
                       last = std::min(part.to + least_, bytes);
    while (part.from > first && may_be_anything(part.from - 1)) --part.from;
    while (part.to < last && may_be_anything(part.to)) ++part.to;
  }

  const reference::Loss& loss_;
  const Case& case_;
  const Arithmetic& arithmetic_;
  std::string message_;
  std::vector<std::uint64_t> formula_;
  std::int64_t least_ = 1;
  std::vector<Part> parts_;
};

}  // namespace

/// Whether the answer changes with what the formula does not read: where all of that is 0, and
/// where it is another letter.
Opinion probe_message(Suspect& suspect) try {
  const auto& fields = suspect.signature().fields;
  const auto message = std::ranges::find(fields, Quantity::payload, &Field::quantity);
  if (message == fields.end()) return std::nullopt;
  const Case& given = suspect.given();
  const impl::Implementation& implementation = suspect.implementation();
  const Arithmetic arithmetic = implementation.arithmetic(float_dtype(suspect.signature(), given));
  const Unread unread(suspect.loss(), given, arithmetic, message->name);
  const LossResult answer = implementation.evaluate(suspect.signature(), given);
  for (const char letter : {'A', 'B'}) {  // in base64 A is 0
    const auto other = unread.filled(letter);
    if (!other || same(answer, implementation.evaluate(suspect.signature(), *other))) continue;
    return Diagnosis{"masked data leaks", 0.9,
                     "the answer changes with what the formula does not read"};
  }
  return std::nullopt;
} catch (const std::exception&) {
  return std::nullopt;
}

}  // namespace lossgate::properties
