// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "reference/given_message.h"
#include "reference/spec/case.h"

namespace lossgate::reference {

/// A case with the standard options whose fields are zeros, masks included, on sequences, tokens
/// and perhaps classes, some of them listed; in f32 where a field may have any format.
inline Case zero_case(const LossSignature& signature, std::int64_t sequences, std::int64_t tokens,
                      std::int64_t vocab = -1, std::int64_t support = -1) {
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = sequences;
  c.shape[Axis::tokens] = tokens;
  c.shape[Axis::vocab] = vocab;
  c.shape[Axis::support] = support;
  for (const Field& field : signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    c.batch.fields.emplace_back(field.name, Tensor::zeros(dtype, c.shape.of(field.axes)));
  }
  return c;
}

/// Draws small cases from a signature alone, for tests that differentiate every entry: all options
/// over their whole range, masks with garbage behind them, log-ratios that sit on option values.
class SmallCases {
 public:
  SmallCases(const LossSignature& signature, std::uint64_t seed, std::int64_t longest = 3)
      : signature_(signature), engine_(seed), longest_(longest) {}

  Case draw(Dtype dtype) {
    Case c;
    c.spec = spec();
    for (Axis axis : kAllAxes) {
      if (has(axis)) c.shape[axis] = axis == Axis::vocab ? integer(2, 6) : integer(1, longest_);
    }
    for (const Field& field : signature_.fields) {
      const Dtype own = field.dtypes.empty() ? dtype : field.dtypes.front();
      c.batch.fields.emplace_back(field.name, Tensor::zeros(own, c.shape.of(field.axes)));
    }
    for (std::size_t i = 0; i < signature_.fields.size(); ++i) fill(c, i);
    poison_masked(c);
    c.upstream = chance(0.5) ? 1.0 : normal();
    return c;
  }

  /// Replaces whatever masked positions hold by other garbage.
  void poison_masked(Case& c) {
    const std::vector<bool> valid = valid_positions(signature_, c);
    for (std::size_t i = 0; i < signature_.fields.size(); ++i) {
      const Field& field = signature_.fields[i];
      if (!is_positional(field) || field.name == signature_.mask) continue;
      if (field.name == signature_.ignore_label) continue;
      Tensor& tensor = c.batch.fields[i].second;
      const auto each = tensor.size() / std::max<std::int64_t>(positions(c), 1);
      for (std::int64_t k = 0; k < tensor.size(); ++k) {
        if (!valid[static_cast<std::size_t>(k / each)]) tensor.set(k, garbage(field, tensor.dtype));
      }
    }
  }

 private:
  static std::int64_t positions(const Case& c) {
    return c.shape[Axis::sequences] * c.shape[Axis::tokens];
  }

  bool has(Axis axis) const {
    return signature_.has_axis(axis) ||
           std::ranges::any_of(signature_.outputs, [&](const OutputField& output) {
             return contains(output.axes, axis);
           });
  }

  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(engine_); }
  double normal() { return std::normal_distribution<double>()(engine_); }
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }

  LossSpec spec() {
    LossSpec spec = standard_spec(signature_);
    if (!signature_.reductions.empty()) {
      spec.reduction = signature_.reductions[static_cast<std::size_t>(
          integer(0, static_cast<std::int64_t>(signature_.reductions.size()) - 1))];
    }
    for (const Option& option : signature_.options) {
      if (!chance(0.5)) spec.set(option.name, value_of_option(option));
    }
    return spec;
  }

  OptionValue value_of_option(const Option& option) {
    if (option.nullable && chance(0.3)) return None{};
    if (option.kind == Option::Kind::choice) {
      const auto last = static_cast<std::int64_t>(option.choices.size()) - 1;
      return option.choices[static_cast<std::size_t>(integer(0, last))];
    }
    const double high = std::min(option.high, option.low + 100.0);
    const double drawn = chance(0.2)   ? option.low
                         : chance(0.2) ? high
                                       : option.low + (high - option.low) * uniform(0.0, 1.0);
    return option.kind == Option::Kind::real ? drawn : std::round(drawn);
  }

  /// A distance between two fields: nothing, little, much, or exactly some option's value.
  double step(const Case& c) {
    if (chance(0.15)) return 0.0;
    if (chance(0.2)) {
      const auto last = static_cast<std::int64_t>(c.spec.options.size()) - 1;
      const OptionValue* value =
          last < 0 ? nullptr : &c.spec.options[static_cast<std::size_t>(integer(0, last))].second;
      if (value && std::holds_alternative<double>(*value)) {
        return std::get<double>(*value) * (chance(0.5) ? 1.0 : -1.0);
      }
    }
    return normal() * (chance(0.7) ? 0.5 : 15.0);
  }

  void fill(Case& c, std::size_t index) {
    const Field& field = signature_.fields[index];
    Tensor& tensor = c.batch.fields[index].second;
    if (field.quantity == Quantity::payload) return write_messages(c, field, tensor);
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, entry(c, index, i));
    if (field.quantity == Quantity::log_prob && field.axes.size() > 2) normalise(tensor);
  }

  /// One response for all sequences, the others for none; each as long as the longest.
  static void write_messages(Case& c, const Field& field, Tensor& tensor) {
    const std::string first =
        small_message(c.shape[Axis::sequences], c.shape[Axis::tokens], c.shape[Axis::support]);
    const std::string other = small_message(0, 0, 0);
    c.shape[Axis::bytes] = static_cast<std::int64_t>(std::max(first.size(), other.size()));
    tensor = Tensor::zeros(tensor.dtype, c.shape.of(field.axes));
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const std::string& text = i < c.shape[Axis::bytes] ? first : other;
      const auto at = static_cast<std::size_t>(i % c.shape[Axis::bytes]);
      tensor.set(i, at < text.size() ? text[at] : ' ');
    }
  }

  double entry(const Case& c, std::size_t index, std::int64_t i) {
    const Field& field = signature_.fields[index];
    switch (field.quantity) {
      case Quantity::mask:
        return chance(0.75);
      case Quantity::label:
        return field.name == signature_.ignore_label && chance(0.2)
                   ? static_cast<double>(kIgnoreLabel)
                   : static_cast<double>(
                         integer(0, std::max<std::int64_t>(c.shape[Axis::vocab], 2) - 1));
      case Quantity::group:
        return static_cast<double>(integer(0, 1));
      case Quantity::advantage:
      case Quantity::reward:
        return chance(0.2) ? 0.0 : normal();
      default:
        break;
    }
    const Tensor* first = first_alike(c, index);
    if (first && field.leaves_rest) return -std::fabs(first->at(i) + step(c));
    if (first) return first->at(i) + step(c);
    return field.quantity == Quantity::log_prob ? -std::fabs(normal()) : normal();
  }

  /// The first field of the same quantity and axes, from which the others keep a distance.
  const Tensor* first_alike(const Case& c, std::size_t index) const {
    const Field& field = signature_.fields[index];
    for (std::size_t i = 0; i < index; ++i) {
      const Field& other = signature_.fields[i];
      if (other.quantity == field.quantity && other.axes == field.axes) {
        return &c.batch.fields[i].second;
      }
    }
    return nullptr;
  }

  /// Log-probs over a last axis: their probabilities sum to less than 1.
  void normalise(Tensor& tensor) {
    const std::int64_t row = tensor.extents.back();
    for (std::int64_t start = 0; start < tensor.size(); start += row) {
      double sum = std::exp(normal());
      for (std::int64_t i = 0; i < row; ++i) sum += std::exp(tensor.at(start + i));
      for (std::int64_t i = 0; i < row; ++i) {
        tensor.set(start + i, tensor.at(start + i) - std::log(sum));
      }
    }
  }

  double garbage(const Field& field, Dtype dtype) {
    if (field.quantity == Quantity::label) {
      return static_cast<double>(chance(0.5) ? kIgnoreLabel : 1000000);
    }
    if (!is_float(dtype)) return static_cast<double>(integer(0, 1));
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double kinds[] = {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity, 1e30,
                            0.0};
    return kinds[integer(0, 4)];
  }

  const LossSignature& signature_;
  std::mt19937_64 engine_;
  std::int64_t longest_;  ///< of each axis but the vocabulary's
};

}  // namespace lossgate::reference
