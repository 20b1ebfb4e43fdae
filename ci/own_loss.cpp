// SPDX-License-Identifier: Apache-2.0
#include "ci/own_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ci/variant.h"

namespace lossgate::ci {
namespace {

using reference::Tracked;

/// The whole case with each field of the case's format in f64.
Case in_double(const LossSignature& loss, Case c) {
  c.split = {};
  for (const Field& field : loss.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (!is_float(tensor.dtype) || !field.dtypes.empty()) continue;
    Tensor wide = Tensor::zeros(Dtype::f64, tensor.extents);
    for (std::int64_t i = 0; i < tensor.size(); ++i) wide.set(i, tensor.at(i));
    tensor = std::move(wide);
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
    const LossResult result =
        function.evaluate(problem.signature, in_double(problem.signature, problem.c));
    for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
      const OutputInfo& output = problem.outputs[o];
      const Tensor* tensor = result.refusal ? nullptr : result.find(output.name);
      if (tensor && tensor->extents != output.extents) tensor = nullptr;
      const double error = tensor ? std::sqrt(arithmetic.roundoff) * largest(*tensor) : 0.0;
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
