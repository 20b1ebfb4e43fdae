// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fuzz/chunks.h"
#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// The steps that make a case simpler. Some lead to an invalid one; which are worth a try, and in
/// which order, is the business of minimise.
namespace lossgate::fuzz {

/// A change to this case, or to one that has fewer entries. It may refer to the signature.
using Change = std::function<void(Case&)>;

/// Whole, or with no empty part, or one, and contiguous, with an upstream gradient of 1: each where
/// it is otherwise.
std::vector<Change> plainer_settings(const Case& c);

/// Each option that is not at its default, to it. The reduction stays: what fails under another is
/// another finding (rule E6).
std::vector<Change> plainer_options(const LossSignature& signature, const Case& c);

/// Of an axis the indices that are kept, and of splits and labels what is left of them.
Case with_axis(const LossSignature& signature, const Case& c, Axis axis, const Kept& kept);

/// What is written in place of a number.
using Rewrite = std::function<double(double)>;

/// 0, or 1 in a mask.
Rewrite plainer(const Field& field);

/// Numbers nearer to 1 or shorter to write, the boldest way first. Zeros, infinities and NaNs stay.
const std::vector<Rewrite>& rounder();

/// The entries that another number would be stored for: never infinity.
Kept changed_by(const Rewrite& rewrite, const Tensor& tensor);

/// The case with those entries of the field rewritten.
Case rewritten(const Case& c, const Field& field, const Rewrite& rewrite, const Kept& entries);

/// How much of a case a reader has to look at: entries that are not plain (0, or 1 in a mask) and
/// options that are not at their default.
std::int64_t unusual_numbers(const LossSignature& signature, const Case& c);

}  // namespace lossgate::fuzz
