// SPDX-License-Identifier: Apache-2.0
#include "reference/reference.h"

#include <algorithm>
#include <cmath>

#include "reference/losses/catalog.h"

namespace lossgate::reference {
namespace {

template <class L>
std::optional<Refusal> refuse(const Case& c) {
  if constexpr (requires { L::refuse(c); }) return L::refuse(c);
  return std::nullopt;
}

std::vector<Loss> build_catalog() {
  std::vector<Loss> losses;
  Catalog::for_each([&]<class L>() {
    losses.push_back({L::signature(), &L::template evaluate<Tracked>, &refuse<L>});
  });
  return losses;
}

}  // namespace

const std::vector<Loss>& catalog() {
  static const std::vector<Loss> losses = build_catalog();
  return losses;
}

const Loss* find_loss(std::string_view id) {
  for (const Loss& loss : catalog()) {
    if (loss.signature.id == id) return &loss;
  }
  return nullptr;
}

const LossSignature* find_signature(std::string_view id) {
  const Loss* loss = find_loss(id);
  return loss ? &loss->signature : nullptr;
}

void evaluate(const Loss& loss, const Problem& problem, const Arithmetic& arithmetic,
              Sink<Tracked>& sink) {
  const ArithmeticScope scope(arithmetic);
  loss.evaluate(Inputs<Tracked>(problem, arithmetic.form), Outputs<Tracked>(problem, sink));
}

Arithmetic real_arithmetic(std::string_view form) {
  Arithmetic a;
  a.compute = Dtype::f64;  // constants of the formulas are exact in Real where they are in double
  a.roundoff = kRealRoundoff;
  a.eta = std::numeric_limits<double>::min();
  a.sum = {.roundoff = a.roundoff, .order = SumOrder::sequential, .width = 1.0};
  a.sum.order = SumOrder::blocked;  // compensated: the error does not grow with the terms
  a.sum.width = std::numeric_limits<double>::max();
  a.matmul = a.sum;
  a.form = form;
  return a;
}

double reference_uncertainty(const Arithmetic& arithmetic) {
  const Arithmetic real = real_arithmetic(arithmetic.form);
  double ratio = real.roundoff / arithmetic.roundoff;
  const auto compare = [&](double own, double subject) {
    if (subject > 0.0) ratio = std::max(ratio, own * real.roundoff / (subject * arithmetic.roundoff));
  };
  const MathLibrary &own = real.math, &subject = arithmetic.math;
  compare(own.exp, subject.exp);
  compare(own.log, subject.log);
  compare(own.log1p, subject.log1p);
  compare(own.expm1, subject.expm1);
  compare(own.tanh, subject.tanh);
  compare(own.sigmoid, subject.sigmoid);
  compare(own.sqrt, subject.sqrt);
  // Two compensated roundings against at least one of the subject's.
  ratio = std::max(ratio, 2.0 * real.roundoff / arithmetic.sum.roundoff);
  ratio = std::max(ratio, 2.0 * real.roundoff / arithmetic.matmul.roundoff);
  return ratio;
}

}  // namespace lossgate::reference
