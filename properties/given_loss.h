// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "properties/agreement.h"

/// For the tests of this folder: a loss whose expectations are simply given, to try comparators.
namespace lossgate::properties {

struct Given {
  reference::Tracked loss = {};
  reference::Tracked value = {};  ///< of the one per-token output
  reference::Tracked gradient =
      {};  ///< of the one differentiable entry, stored in the case's dtype
};

/// One valid token of the loss, stored in `dtype`, whose entries are these until others are given.
CaseStudy given_study(const Given& given, Dtype dtype = Dtype::f32, double upstream = 1.0);

/// Exact but for `err`.
reference::Tracked near(reference::Real value, double err = 0.0, double half = 0.0);

/// The comparison of these actual numbers with what is given, for one valid token, stored in
/// `dtype` and computed in it or in `computed`.
struct Actual {
  double loss = 0.0, value = 0.0, gradient = 0.0;
};
Outcome compare_with(const Given& given, const Actual& actual, Dtype dtype = Dtype::f32,
                     double upstream = 1.0, std::optional<Dtype> computed = std::nullopt);

/// The comparison of the gradient alone.
Outcome judge(const reference::Tracked& expected, double actual, Dtype dtype = Dtype::f32);

}  // namespace lossgate::properties
