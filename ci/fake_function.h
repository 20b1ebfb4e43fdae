// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ci/recognition.h"
#include "impl/implementation.h"

namespace lossgate::ci {

/// A function made of a loss's own formula: what it takes, what it has instead of what it does not
/// take, and what it does to a case before and to a result after.
struct FakeFunction : Function {
  explicit FakeFunction(std::string id) : loss(*reference::find_loss(id)) {
    for (const Field& field : loss.signature.fields) fields.push_back(field.name);
    for (const Option& option : loss.signature.options) told.push_back(option.name);
  }

  /// Written into it, and so not told.
  FakeFunction& with(const std::string& option, OptionValue value) {
    std::erase(told, option);
    constants.emplace_back(option, std::move(value));
    return *this;
  }
  /// One parameter stands for both.
  FakeFunction& tie(const std::string& option, const std::string& followed) {
    std::erase(told, option);
    tied.emplace_back(option, followed);
    return *this;
  }
  FakeFunction& without(const std::string& field) {
    std::erase(fields, field);
    return *this;
  }
  FakeFunction& only(Reduction reduction) {
    takes_reduction = false;
    before = [reduction, then = before](Case& c) {
      c.spec.reduction = reduction;
      if (then) then(c);
    };
    return *this;
  }

  impl::Greeting bind(const impl::Subject& subject, const LossSignature& signature) override {
    impl::Greeting greeting;
    greeting.reduction = takes_reduction;
    greeting.tied = tied;
    greeting.defaults = defaults;
    for (const std::string& option : told) {
      if (!signature.find_option(option)) throw impl::SubjectError("no option " + option);
      greeting.options.push_back(option);
      greeting.arguments.emplace_back(option, "option:" + option);
    }
    for (const std::string& field : fields) {
      if (!signature.find_field(field)) throw impl::SubjectError("no field " + field);
      std::string source = "field:" + field;
      for (const auto& [parameter, other] : subject.arguments) {
        if (parameter == field) source = other;
      }
      greeting.arguments.emplace_back(field, source);
    }
    return greeting;
  }

  LossResult answer(const impl::Subject&, const LossSignature& narrowed, const Case& c) override {
    Case changed = c;
    for (const auto& [option, other] : tied) changed.spec.set(option, *c.spec.find(other));
    for (const auto& [option, value] : constants) changed.spec.set(option, value);
    for (const Option& option : loss.signature.options) {
      if (!changed.spec.find(option.name)) changed.spec.set(option.name, option.standard);
    }
    try {
      if (before) before(changed);
    } catch (const Refusal& refusal) {
      LossResult refused;
      refused.refusal = refusal;
      return refused;
    }
    reference::Loss bare = loss;
    bare.signature = narrowed;
    const reference::Problem problem(bare.signature, changed);
    Filled filled;
    for (const OutputInfo& output : problem.outputs) {
      filled.result.outputs.push_back({output.name, Tensor::zeros(output.dtype, output.extents)});
    }
    reference::evaluate(bare, problem, reference::real_arithmetic(), filled);
    if (after) after(changed, filled.result);
    return std::move(filled.result);
  }

  Recognition recognised(bool thorough = true) {
    impl::Subject subject;
    subject.name = "given";
    return recognise(*this, loss, subject, thorough);
  }

  const reference::Loss& loss;
  std::vector<std::string> fields, told;
  std::vector<std::pair<std::string, std::string>> tied;
  OptionValues constants, defaults;
  bool takes_reduction = true;
  std::function<void(Case&)> before;
  std::function<void(const Case&, LossResult&)> after;

 private:
  struct Filled : reference::Sink<reference::Tracked> {
    LossResult result;
    void entry(std::size_t output, std::int64_t index, const reference::Tracked& value) override {
      result.outputs[output].tensor.set(index, static_cast<double>(value.v));
    }
  };
};

/// Every number of the result times a factor.
inline void scale(LossResult& result, double factor) {
  for (Output& output : result.outputs) {
    for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
      output.tensor.set(i, output.tensor.at(i) * factor);
    }
  }
}

}  // namespace lossgate::ci
