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

Arithmetic real_arithmetic() {
  Arithmetic a;
  a.compute = Dtype::f64;
  a.roundoff = kRealRoundoff;
  a.sum = {.roundoff = 2.0 * kRealRoundoff, .order = SumOrder::pairwise, .width = 1.0};
  a.matmul = a.sum;
  return a;
}

double uncertainty(const Arithmetic& own, const Arithmetic& subject) {
  double worst = 0.0;
  const auto charge = [&](double reference, double charged) {
    worst = std::max(worst, reference / charged);
  };
  charge(own.roundoff, subject.roundoff);
  charge(own.sum.roundoff, subject.sum.roundoff);
  charge(own.matmul.roundoff, subject.matmul.roundoff);
  using M = MathLibrary;
  for (double M::*f : {&M::exp, &M::log, &M::log1p, &M::expm1, &M::tanh, &M::sigmoid, &M::sqrt}) {
    charge(own.math.*f * own.roundoff, subject.math.*f * subject.roundoff);
  }
  return worst;
}

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
  if (loss.advice) return loss.advice->values(problem, arithmetic, sink);
  const Arithmetic scaled = behind(problem.c.upstream, arithmetic);
  const ArithmeticScope scope(scaled);
  loss.evaluate(Inputs<Tracked>(problem, arithmetic.form), Outputs<Tracked>(problem, sink));
}

void evaluate(const Loss& loss, const Problem& problem, const Arithmetic& arithmetic,
              Sink<Tracked>& sink, const Accumulation& other, Sink<Tracked>& beside) {
  const Arithmetic scaled = behind(problem.c.upstream, arithmetic);
  const ArithmeticScope scope(scaled);
  loss.evaluate(Inputs<Tracked>(problem, arithmetic.form),
                Outputs<Tracked>(problem, sink, other, beside));
}

std::string_view unsuitable_for(const Arithmetic& arithmetic) {
  if (arithmetic.compute == Dtype::f64 && !kRealIsWiderThanDouble) return "reference not wider";
  static const Arithmetic own = real_arithmetic();
  return uncertainty(own, arithmetic) > 0.01 ? "reference uncertain" : "";
}

}  // namespace lossgate::reference
