// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "properties/probes.h"
#include "properties/weights.h"

namespace lossgate::properties {
namespace {

constexpr const char* kMisread = "option misread";
/// What is in proportion is so within that share.
constexpr double kShare = 1.0 / 64;

bool is_limit(const Option& option) { return option.nullable && option.kind == Option::Kind::real; }

const double* number_of(const LossSpec& spec, const Option& option) {
  const OptionValue* value = spec.find(option.name);
  return value ? std::get_if<double>(value) : nullptr;
}

std::string text_of(const OptionValue& value) {
  std::ostringstream text;
  if (std::holds_alternative<None>(value)) text << "none";
  if (const auto* number = std::get_if<double>(&value)) text << *number;
  if (const auto* word = std::get_if<std::string>(&value)) text << *word;
  return text.str();
}

/// What an option may have been taken for.
std::vector<OptionValue> other_values(const LossSignature& signature, const LossSpec& spec,
                                      const Option& option) {
  std::vector<OptionValue> values = {option.standard};
  if (option.nullable) values.emplace_back(None{});
  for (const std::string& choice : option.choices) values.emplace_back(choice);
  if (option.kind == Option::Kind::flag) {
    values.emplace_back(0.0);
    values.emplace_back(1.0);
  }
  if (option.kind == Option::Kind::real || option.kind == Option::Kind::integer) {
    for (const double value : {0.0, 1.0, option.low}) values.emplace_back(value);
  }
  if (const double* own = number_of(spec, option); own && option.kind != Option::Kind::flag) {
    for (const double value : {1.0 / *own, *own * *own, 1.0 - *own}) values.emplace_back(value);
    for (const Option& other : signature.options) {
      if (const double* number = number_of(spec, other)) values.emplace_back(*number);
    }
  }
  const OptionValue* given = spec.find(option.name);
  std::erase_if(values, [&](const OptionValue& value) { return given && value == *given; });
  return values;
}

/// Half of a number and twice it, as a 2 that is left out of the formula has it; not where one
/// factor lies on all that is wrong, which any option that divides or multiplies all would explain.
void add_half_and_twice(const LossSpec& spec, const Option& option, const Reading& reading,
                        std::vector<OptionValue>& values) {
  const double* own = number_of(spec, option);
  if (!own || *own == 0.0 || option.kind != Option::Kind::real) return;
  if (has_one_factor(row_factors(reading))) return;
  for (const double value : {0.5 * *own, 2.0 * *own}) values.emplace_back(value);
}

/// Whether the answer is that of the formula with bounds taken around 1, or as distances from it.
bool reads_bounds_around_one(const LossSignature& signature, const Reading& reading) {
  std::vector<const Option*> bounds;
  for (const Option& option : signature.options) {
    const bool bound = option.name.ends_with("_low") || option.name.ends_with("_high");
    if (bound && number_of(reading.given().spec, option)) bounds.push_back(&option);
  }
  for (const double one : {1.0, -1.0}) {
    Case c = reading.given();
    for (const Option* option : bounds) {
      const double own = *number_of(reading.given().spec, *option);
      const bool low = option->name.ends_with("_low");
      c.spec.set(option->name, low ? 1.0 - own : own + one);
    }
    if (!bounds.empty() && reading.answers(c)) return true;
  }
  return false;
}

/// What an option has where a formula does without it, or callers do.
std::vector<OptionValue> usual_values(const Option& option) {
  std::vector<OptionValue> values;
  if (option.nullable) values.emplace_back(None{});
  values.push_back(option.standard);
  return values;
}

std::vector<OptionValue> plain_numbers(const Option& option) {
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
    all.emplace_back([&signature, &field](Case& c) {
      Tensor& tensor = c.batch.at(field.name);
      const std::int64_t vocab = c.shape[Axis::vocab];
      if (const auto numbers = with_other_numbers(signature, c, {.turn = 1})) {
        tensor = numbers->batch.at(field.name);
      }
      if (field.quantity != Quantity::label || vocab < 1) return;
      for (std::int64_t i = 0; i < tensor.size(); ++i) {
        const std::int64_t label = tensor.integer_at(i);
        if (label >= 0) tensor.set(i, static_cast<double>((label + 1) % vocab));
      }
    });
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

/// Whether the other case takes for right what is right of the given one: then it takes whatever
/// lies between, and shows nothing [a ratio of 1 and a bound of 1, where either slope is right].
bool takes_right_numbers(const Reading& given, const Case& other) {
  return std::ranges::equal(given.entries(), given.beside(other),
                            [](const ReadEntry& own, const ReadEntry& there) {
                              return std::fabs(own.expected - there.expected) <= there.accepted;
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

/// Whether a term of the formula has the option for a factor, and all that is wrong as well:
/// without the option whatever is wrong with that term is gone.
bool is_wrong_in_its_term(const Suspect& suspect, const Reading& wrong, const Option& option) {
  const double* own = number_of(wrong.given().spec, option);
  const bool scales = option.kind == Option::Kind::real && option.low == 0.0 && !option.nullable;
  if (!own || !scales || *own == 0.0) return false;
  const auto with = [&](double number) {
    Case c = wrong.given();
    c.spec.set(option.name, number);
    follow(suspect.signature(), c.spec);
    return c;
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

}  // namespace

/// The answer is what the formula gives for another value of an option, of the given case, too:
/// plain numbers that lie far apart may be held by one of several bounds.
Opinion probe_options(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain) || !plain->finite()) return std::nullopt;
  const LossSignature& signature = suspect.signature();
  for (const Option& option : options_of_formula(signature)) {
    std::vector<OptionValue> values = other_values(signature, plain->given().spec, option);
    add_half_and_twice(plain->given().spec, option, *plain, values);
    for (const OptionValue& value : values) {
      const auto with_it = [&](const Reading& reading) {
        Case other = reading.given();
        other.spec.set(option.name, value);
        return other;
      };
      const auto is_it = [&](const Reading& reading) { return reading.answers(with_it(reading)); };
      if (!suspect.fits(*plain, is_it) || takes_right_numbers(*plain, with_it(*plain))) continue;
      const auto& given = suspect.as_given();
      if (is_wrong(given) && given->finite() && !is_it(*given)) continue;
      const bool off = is_limit(option) && std::holds_alternative<None>(value);
      return Diagnosis{off ? "dead clamp" : kMisread, 0.95,
                       "the answer is that of another value of " + option.name};
    }
  }
  const auto around_one = [&](const Reading& reading) {
    return reads_bounds_around_one(signature, reading);
  };
  if (suspect.fits(*plain, around_one)) {
    return Diagnosis{kMisread, 0.95, "bounds of a weight are taken for distances from 1"};
  }
  return std::nullopt;
}

/// What is wrong is right once one option, or all numbers among them, stand elsewhere, and it is
/// not something else that is silenced there. A forward that is right reads them as it should.
Opinion probe_needed_options(Suspect& suspect) {
  const auto& plain = suspect.plain();
  if (!is_wrong(plain) || !plain->finite()) return std::nullopt;
  const LossSignature& signature = suspect.signature();
  const bool forward = !is_wrong_in_gradients_alone(plain);
  if (!forward && suspect.wrong_in_values()) return std::nullopt;  // of the given case it is not
  const auto says = [&](const std::string& because) {
    return Diagnosis{forward ? kMisread : "backward is not the derivative", 0.7,
                     forward ? because : "the forward is right, and the gradient " + because};
  };
  // An option that makes everything 0 says nothing.
  const auto right = [&](const Case& c, bool may_silence) {
    const auto reading = suspect.read(c);
    return is_right(reading) && 2 * reading->numbers() > plain->numbers() &&
           (may_silence || !silences(signature, *plain, *reading));
  };
  // Without a limit its own term alone is silent; a number that says less comes last.
  for (const bool usual : {true, false}) {
    for (const Option& option : signature.options) {
      if (option.name == signature.coefficient) continue;
      for (const OptionValue& value : usual ? usual_values(option) : plain_numbers(option)) {
        Case other = plain->given();
        other.spec.set(option.name, value);
        follow(signature, other.spec);
        if (other.spec == plain->given().spec || !right(other, usual)) continue;
        std::string where = "right where " + option.name + " is " + text_of(value);
        const bool off = value == OptionValue(0.0) && is_wrong_in_its_term(suspect, *plain, option);
        if (off) where += " and off in proportion to it: the fault is in its term";
        return says(where);
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
  if (!right(ones, false)) return std::nullopt;
  return says("right where numbers among the options are 1");
}

}  // namespace lossgate::properties
