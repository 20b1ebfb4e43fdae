// SPDX-License-Identifier: Apache-2.0
#include "ci/own_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ci/variant.h"
#include "properties/nudged.h"
#include "reference/spec/numbers.h"

namespace lossgate::ci {
namespace {

using properties::Scale;
using reference::Tracked;

/// The whole case with each field of the case's format in f64.
Case in_double(const LossSignature& loss, Case c) {
  c.split = {};
  for (const Field& field : loss.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (!is_float(tensor.dtype) || !field.dtypes.empty()) continue;
    tensor = as_dtype(std::move(tensor), Dtype::f64);
  }
  return c;
}

double largest(const Tensor& tensor) {
  double most = 0.0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    if (std::isfinite(tensor.at(i))) most = std::max(most, std::fabs(tensor.at(i)));
  }
  return most;
}

/// The largest difference of two results that are both numbers.
double largest_difference(const Tensor& one, const Tensor& other) {
  double most = 0.0;
  for (std::int64_t i = 0; i < one.size(); ++i) {
    const double difference = std::fabs(one.at(i) - other.at(i));
    if (std::isfinite(difference)) most = std::max(most, difference);
  }
  return most;
}

/// The output of that name, where the function gave one of that shape.
const Tensor* given(const LossResult& result, const OutputInfo& output) {
  const Tensor* tensor = result.refusal ? nullptr : result.find(output.name);
  return tensor && tensor->extents == output.extents ? tensor : nullptr;
}

/// Nothing is said where the function refuses, or returns no number.
Tracked said(const Tensor* tensor, std::int64_t at, double error) {
  const double value = tensor ? tensor->at(at) : std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(value)) return {std::numeric_limits<reference::Real>::quiet_NaN(), 0, 0, 0};
  return {value, error, std::fabs(value), 0.0};
}

}  // namespace

reference::Loss own_loss(const impl::Subject& subject, std::shared_ptr<impl::Session> session) {
  impl::Subject wide = subject;
  wide.dtypes = {Dtype::f64};
  const auto function =
      guarded(impl::brought_implementation(wide, *subject.own, std::move(session)));
  reference::Loss loss{.signature = *subject.own, .evaluate = nullptr, .refuse = [](const Case&) {
                         return std::optional<Refusal>();
                       }};
  const auto values = [function](const reference::Problem& problem, const Arithmetic& arithmetic,
                                 reference::Sink<Tracked>& sink) {
    const double half = std::sqrt(arithmetic.roundoff);
    const Case wide = in_double(problem.signature, problem.c);
    const LossResult result = function.evaluate(problem.signature, wide);
    std::vector<LossResult> moved;
    for (const Scale scale : {Scale::of_field, Scale::of_number}) {
      const Case beside = properties::nudged(problem.signature, wide, half, scale);
      moved.push_back(function.evaluate(problem.signature, beside));
    }
    for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
      const OutputInfo& output = problem.outputs[o];
      const Tensor* tensor = given(result, output);
      double error = tensor ? half * largest(*tensor) : 0.0;
      for (const LossResult& other : moved) {
        const Tensor* beside = given(other, output);
        if (tensor && beside) error = std::max(error, largest_difference(*tensor, *beside));
      }
      for (std::int64_t i = 0; i < element_count(output.extents); ++i) {
        sink.entry(o, i, said(tensor, i, error));
      }
    }
  };
  loss.advice = {.values = values, .judges = [](const Arithmetic& arithmetic) {
                   return arithmetic.roundoff <= unit_roundoff(Dtype::f64);
                 }};
  return loss;
}

}  // namespace lossgate::ci
