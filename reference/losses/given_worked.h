// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reference/reference.h"

/// Numbers worked by hand from the sources of each loss. Inputs are f64, so what is stored differs
/// from what is written by a roundoff; results are compared to 4 ulps of f64, zeros exactly.
namespace lossgate::reference {

inline const double kLn2 = std::log(2.0), kLn3 = std::log(3.0);

/// One case, described by what matters: everything else is valid, f64, and summed.
class Worked {
 public:
  Worked(std::string_view loss, std::vector<std::pair<Axis, std::int64_t>> extents)
      : loss_(*find_loss(loss)) {
    for (const auto& [axis, extent] : extents) case_.shape[axis] = extent;
    case_.spec = standard_spec(loss_.signature);
    if (!loss_.signature.reductions.empty()) case_.spec.reduction = Reduction::sum;
    for (const Field& field : loss_.signature.fields) {
      const Dtype dtype = field.dtypes.empty() ? Dtype::f64 : field.dtypes.front();
      Tensor tensor = Tensor::zeros(dtype, case_.shape.of(field.axes));
      for (std::int64_t i = 0; field.role == Role::mask && i < tensor.size(); ++i) tensor.set(i, 1);
      case_.batch.fields.emplace_back(field.name, std::move(tensor));
    }
  }

  Worked& with(std::string_view option, OptionValue value) {
    case_.spec.set(option, std::move(value));
    return *this;
  }
  Worked& reduced(Reduction reduction) {
    case_.spec.reduction = reduction;
    return *this;
  }
  Worked& field(std::string_view name, const std::vector<double>& values) {
    Tensor& tensor = case_.batch.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      tensor.set(static_cast<std::int64_t>(i), values[i]);
    }
    return *this;
  }

  /// Expects an output's leading entries.
  Worked& gives(const std::string& output, const std::vector<double>& expected) {
    const std::vector<double> actual = evaluated().at(output);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_DOUBLE_EQ(actual.at(i), expected[i])
          << loss_.signature.id << " " << output << " " << i;
    }
    return *this;
  }

 private:
  struct Kept : Sink<Tracked> {
    std::map<std::string, std::vector<double>> values;
    std::vector<OutputInfo> outputs;
    void entry(std::size_t output, std::int64_t index, const Tracked& value) override {
      auto& all = values[outputs[output].name];
      all.resize(std::max(all.size(), static_cast<std::size_t>(index) + 1));
      all[static_cast<std::size_t>(index)] = static_cast<double>(value.v);
    }
  };

  std::map<std::string, std::vector<double>> evaluated() const {
    EXPECT_FALSE(expected_refusal(loss_, case_)) << expected_refusal(loss_, case_)->message;
    const auto& forms = loss_.signature.forms;
    const Problem problem(loss_.signature, case_);
    Kept kept;
    kept.outputs = problem.outputs;
    evaluate(loss_, problem, plain_arithmetic(Dtype::f64, forms.empty() ? "" : forms.front()),
             kept);
    return std::move(kept.values);
  }

  const Loss& loss_;
  Case case_;
};

}  // namespace lossgate::reference
