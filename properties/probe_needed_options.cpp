// SPDX-License-Identifier: Apache-2.0
// What is right with one option elsewhere, and what that says.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "properties/option_values.h"
#include "properties/probes.h"

namespace lossgate::properties {
namespace {

constexpr const char* kMisread = "option misread";
/// What is in proportion is so within that share.
constexpr double kShare = 1.0 / 64;

std::string text_of(const OptionValue& value) {
  std::ostringstream text;
  if (std::holds_alternative<None>(value)) text << "none";
  if (const auto* number = std::get_if<double>(&value)) text << *number;
  if (const auto* word = std::get_if<std::string>(&value)) text << *word;
  return text.str();
}

/// What an option has where a formula does without it, or callers do.
std::vector<OptionValue> usual_values(const Option& option) {
  std::vector<OptionValue> values;
  if (option.nullable) values.emplace_back(None{});
  values.push_back(option.standard);
  return values;
}

/// Of what scales whole terms 0 alone, without which they are silent.
std::vector<OptionValue> plain_numbers(const LossSignature& signature, const Option& option) {
  if (option.name == signature.coefficient) return {0.0};
  std::vector<OptionValue> values;
  for (const double number : {0.0, 1.0}) {
    const bool in_range = option.low <= number && number <= option.high;
    if (option.kind == Option::Kind::real && in_range) values.emplace_back(number);
  }
  return values;
}

using Change = std::function<void(Case&)>;

/// Other numbers in each field, the next label at each position, and each other value of an option
/// that the specifications have in common.
std::vector<Change> changes(const LossSignature& signature, const LossSpec& spec,
                            const LossSpec& other) {
  std::vector<Change> all;
  for (const Field& field : signature.fields) {
    all.emplace_back(
        [&signature, &field](Case& c) { c = with_another_field(signature, std::move(c), field); });
  }
  for (const Option& option : options_of_formula(signature)) {
    const OptionValue *own = spec.find(option.name), *there = other.find(option.name);
    if (!own || !there || *own != *there) continue;
    for (const OptionValue& value : other_values(signature, spec, option)) {
      all.emplace_back([name = option.name, value](Case& c) { c.spec.set(name, value); });
    }
  }
  return all;
}

/// Whether the formula feels the change; nothing where it refuses it.
std::optional<bool> feels(const Reading& reading, const Change& change) {
  Case c = reading.given();
  change(c);
  const auto changed = reading.beside(c);
  if (changed.empty()) return std::nullopt;
  return !std::ranges::equal(
      reading.entries(), changed, [](const ReadEntry& one, const ReadEntry& other) {
        return std::fabs(one.expected - other.expected) <= one.accepted + other.accepted;
      });
}

/// Whether something that the one case feels is not felt in the other: what is right there may owe
/// it to that [gamma 0, where lambda is misread; a smoothing of 1, where labels are].
bool silences(const LossSignature& signature, const Reading& given, const Reading& other) {
  const auto all = changes(signature, given.given().spec, other.given().spec);
  return std::ranges::any_of(all, [&](const Change& change) {
    return feels(given, change) == true && feels(other, change) == false;
  });
}

/// Whether that is right where the other is wrong: what makes everything 0 says nothing.
bool says_something(const std::optional<Reading>& right, const Reading& wrong) {
  return is_right(right) && 2 * right->numbers() > wrong.numbers();
}

/// Whether a term of the formula has the option for a factor, and all that is wrong as well:
/// without the option whatever is wrong with that term is gone.
bool is_wrong_in_its_term(const Suspect& suspect, const Reading& wrong, const Option& option) {
  const double* own = number_of(wrong.given().spec, option);
  const bool scales = option.kind == Option::Kind::real && option.low == 0.0 && !option.nullable;
  if (!own || !scales || *own == 0.0) return false;
  const auto with = [&](double number) {
    return with_value(suspect.signature(), wrong.given(), option, number);
  };
  const auto halved = suspect.read(with(0.5 * *own));
  const auto without = wrong.beside(with(0.0));
  const std::size_t count = wrong.entries().size();
  if (!halved || halved->entries().size() != count || without.size() != count) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const ReadEntry &whole = wrong.entries()[i], &part = halved->entries()[i], &rest = without[i];
    const double slack = whole.accepted + part.accepted + rest.accepted;
    const auto is_half = [&](double of_part, double of_whole) {
      return std::fabs(of_part - 0.5 * of_whole) <= slack + kShare * std::fabs(of_whole);
    };
    if (!is_half(part.expected - rest.expected, whole.expected - rest.expected)) return false;
    if (!is_half(part.actual - part.expected, whole.actual - whole.expected)) return false;
  }
  return true;
}

/// Whether it is no number: whoever takes one value for another one gives that one's answer, so
/// where one value is right and another wrong, what the latter asks for is.
bool asks_for_something(const Option& option) {
  return option.kind == Option::Kind::flag || !option.choices.empty();
}

/// What is said of an option that stands elsewhere where all is right.
struct Needed {
  const char* cause = kMisread;
  double confidence = 0.7;
  std::string because;
};

/// Whether what is wrong is right with the other sign of a term, without which it is that case.
bool has_other_sign(const Reading& wrong, const Case& without) {
  const auto rest = wrong.beside(without);
  if (rest.size() != wrong.entries().size()) return false;
  return std::ranges::equal(wrong.entries(), rest, [](const ReadEntry& e, const ReadEntry& other) {
    const double turned = 2.0 * other.expected - e.expected;
    return !e.wrong() || std::fabs(e.actual - turned) <= e.accepted + 2.0 * other.accepted;
  });
}

/// Whether that value of the option makes right what is wrong, with other numbers, too, farther
/// apart; and what that says. Something else may be to blame that is silenced by it; of a term what
/// it is made of, which is no option that is misread.
std::optional<Needed> needed(const Suspect& suspect, const Reading& wrong, const Option& option,
                             const OptionValue& value, bool usual) {
  const LossSignature& signature = suspect.signature();
  const Case other = with_value(signature, wrong.given(), option, value);
  if (other.spec == wrong.given().spec) return std::nullopt;
  const auto there = suspect.read(other);
  if (!says_something(there, wrong)) return std::nullopt;
  const bool silent = !usual && silences(signature, wrong, *there);
  const bool of_term = value == OptionValue(0.0) && is_wrong_in_its_term(suspect, wrong, option);
  if (silent && !of_term) return std::nullopt;
  const auto is_right_there = [&](const Reading& reading) {
    return is_right(suspect.read(with_value(signature, reading.given(), option, value)));
  };
  if (!suspect.fits(wrong, is_right_there)) return std::nullopt;
  const auto is_turned = [&](const Reading& reading) {
    return has_other_sign(reading, with_value(signature, reading.given(), option, value));
  };
  if (of_term && suspect.fits(wrong, is_turned)) {
    return Needed{"wrong sign", 0.95,
                  "the term that " + option.name + " scales has the other sign"};
  }
  Needed result{.because = "right where " + option.name + " is " + text_of(value)};
  if (of_term) result.because += " and off in proportion to it: the fault is in its term";
  if (asks_for_something(option)) {
    const OptionValue* own = wrong.given().spec.find(option.name);
    result.because += ": the fault is in what " + (own ? text_of(*own) : "another") + " asks for";
  }
  if (silent || asks_for_something(option)) result.cause = "disagrees with the formula";
  return result;
}

}  // namespace

/// What is wrong is right once one option, or all numbers among them, stand elsewhere, and it is
/// not something else that is silenced there. A forward that is right reads them as it should.
Opinion probe_needed_options(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain) || !plain->finite()) return std::nullopt;
  const LossSignature& signature = suspect.signature();
  const bool forward = !is_wrong_in_gradients_alone(plain);
  if (!forward && suspect.wrong_in_values()) return std::nullopt;  // of the given case it is not
  const auto says = [&](const Needed& all) {
    if (forward || all.confidence >= kSure)
      return Diagnosis{all.cause, all.confidence, all.because};
    return Diagnosis{"backward is not the derivative", all.confidence,
                     "the forward is right, and the gradient " + all.because};
  };
  // Without a limit its own term alone is silent; a number that says less comes last.
  for (const bool usual : {true, false}) {
    for (const Option& option : signature.options) {
      if (usual && option.name == signature.coefficient) continue;
      for (const OptionValue& value :
           usual ? usual_values(option) : plain_numbers(signature, option)) {
        if (const auto all = needed(suspect, *plain, option, value, usual)) return says(*all);
      }
    }
  }
  Case ones = plain->given();
  for (const Option& option : signature.options) {
    const bool number = option.kind == Option::Kind::real && !option.nullable;
    const bool may_be_one = option.low <= 1.0 && 1.0 <= option.high;
    if (number && may_be_one && option.name != signature.coefficient) {
      ones.spec.set(option.name, 1.0);
    }
  }
  const auto at_ones = suspect.read(ones);
  if (!says_something(at_ones, *plain) || silences(signature, *plain, *at_ones)) {
    return std::nullopt;
  }
  return says({.because = "right where numbers among the options are 1"});
}

}  // namespace lossgate::properties
