// SPDX-License-Identifier: Apache-2.0
#include "properties/room.h"

#include <algorithm>
#include <cmath>

#include "properties/agreement.h"
#include "properties/allowance.h"
#include "properties/case_facts.h"
#include "properties/nudged.h"
#include "reference/exponents.h"

namespace lossgate::properties {
namespace {

reference::Exponents exponents_of(const Evaluation& evaluation, const CaseStudy& study) {
  reference::Exponents exponents(evaluation.arithmetic());
  exponents.narrow_to(float_dtype(study.signature(), study.whole()));
  for (const OutputInfo& output : study.outputs()) exponents.narrow_to(output.dtype);
  return exponents;
}

/// The products of one number of each input, the largest and the smallest, and of how many numbers
/// the largest field is.
struct Products {
  double largest = 1.0, smallest = 1.0, terms = 1.0;

  void multiply(double most, double least) {
    largest *= std::max(most, 1.0);
    smallest *= std::min(least, 1.0);
  }
  /// Of an input that is one number. A zero annihilates: nothing is made smaller by it, or larger.
  void multiply(double number) {
    const double size = std::fabs(number);
    if (size != 0.0) multiply(size, size);
  }
};

void multiply(Products& products, const CaseStudy& study, const Field& field,
              const std::vector<bool>& valid) {
  const Tensor& tensor = study.whole().batch.at(field.name);
  if (!is_float(tensor.dtype)) return;
  const std::int64_t each = is_positional(field) ? entries_per_position(study.whole(), tensor) : 0;
  double most = 1.0, least = 1.0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const double size = std::fabs(tensor.at(i));
    if (size == 0.0 || (each > 0 && !valid[static_cast<std::size_t>(i / each)])) continue;
    most = std::max(most, size);
    least = std::min(least, size);
  }
  products.multiply(most, least);
  products.terms = std::max(products.terms, static_cast<double>(tensor.size()));
}

Products products_of(const CaseStudy& study) {
  Products products;
  const std::vector<bool> valid = valid_positions(study.signature(), study.whole());
  for (const Field& field : study.signature().fields) multiply(products, study, field, valid);
  for (const auto& [name, value] : study.whole().spec.options) {
    if (const double* number = std::get_if<double>(&value)) products.multiply(*number);
  }
  products.multiply(study.whole().upstream);
  return products;
}

/// The largest number of which as many as the largest field has, squared, may be added up.
double most_of(const reference::Exponents& range, const Products& products) {
  return std::sqrt(range.largest / products.terms);
}

bool inputs_leave_room(const Evaluation& evaluation, const CaseStudy& study) {
  if (study.refusal() || !has_finite_inputs(study.whole())) return false;
  const reference::Exponents range = exponents_of(evaluation, study);
  const Products products = products_of(study);
  return products.largest <= most_of(range, products) &&
         products.smallest >= std::sqrt(std::sqrt(range.least_normal));
}

bool results_leave_room(Evaluation& evaluation, CaseStudy& study) {
  const double most = most_of(exponents_of(evaluation, study), products_of(study));
  const auto leaves_none = [&](std::size_t, std::int64_t, const reference::Tracked& x) {
    return !(most_allowed(x) <= most);  // nor does what is no number
  };
  return !study.refusal() &&
         !study.any_expected(evaluation.stable_arithmetic(), false, leaves_none);
}

bool is_not_finite(const CaseStudy& study, const LossResult& result) {
  if (malformed(study, result)) return false;
  const Tensor* loss = result.find("loss");
  return loss && !loss->all_finite();
}

std::optional<Transformed> moved(const LossSignature& signature, const Case& whole, const Case&) {
  const double relative = reference::half_of_digits(float_dtype(signature, whole));
  return Transformed{nudged(signature, whole, relative, Scale::of_number)};
}

/// The case with each number moved by half of its digits.
constexpr Transform kMoved{"moved", moved};

}  // namespace

bool has_room(Evaluation& evaluation) {
  CaseStudy& study = evaluation.study();
  return inputs_leave_room(evaluation, study) && results_leave_room(evaluation, study);
}

bool overflows_by_itself(Evaluation& evaluation) {
  CaseStudy& study = evaluation.study();
  if (!has_room(evaluation) || !is_not_finite(study, evaluation.actual())) return false;
  // Its inputs are as large; where a 0 was moved off, they are smaller, which says nothing.
  CaseStudy& nearby = *study.derived(kMoved);
  return results_leave_room(evaluation, nearby) && is_not_finite(nearby, evaluation.actual(kMoved));
}

}  // namespace lossgate::properties
