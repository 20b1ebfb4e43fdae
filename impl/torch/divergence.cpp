// SPDX-License-Identifier: Apache-2.0
#include "impl/torch/divergence.h"

#include <cmath>
#include <limits>

namespace lossgate::impl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

at::Tensor log_softmax(const at::Tensor& x) {
  const at::Tensor shifted = x - x.amax(-1, /*keepdim=*/true);
  return shifted - shifted.exp().sum(-1, /*keepdim=*/true).log_();
}

at::Tensor cooled(const at::Tensor& logits, double temperature) {
  if (temperature >= 1.0) return cooled_gradient(logits, temperature);
  const double largest = logits.scalar_type() == at::kDouble ? std::numeric_limits<double>::max()
                                                             : std::numeric_limits<float>::max();
  return at::where(logits.isinf(), logits, (logits / temperature).clamp_(-largest, largest));
}

at::Tensor cooled_gradient(const at::Tensor& g, double temperature) {
  return temperature == 1.0 ? g : g / temperature;
}

at::Tensor log_softmax_gradient(const at::Tensor& log_prob, const at::Tensor& g) {
  return g - weighed(log_prob.exp(), log_prob, g.sum(-1, /*keepdim=*/true));
}

at::Tensor weighed(const at::Tensor& p, const at::Tensor& log_p, const at::Tensor& x) {
  return (p * x).masked_fill_(log_p == -kInfinity, 0);
}

Divergence jensen_shannon(const at::Tensor& student, const at::Tensor& teacher, double beta,
                          bool normalised) {
  if (beta == 0.0) {
    const at::Tensor q = teacher.exp();
    return {weighed(q, teacher, teacher - student).sum(-1), -q};
  }
  const at::Tensor p = student.exp();
  if (beta == 1.0) {
    const at::Tensor terms = weighed(p, student, student - teacher);
    return {terms.sum(-1), normalised ? terms : terms + p};
  }
  const at::Tensor mixture = at::logaddexp(student + std::log1p(-beta), teacher + std::log(beta));
  const at::Tensor from_teacher = weighed(teacher.exp(), teacher, teacher - mixture);
  const at::Tensor from_student = weighed(p, student, student - mixture);
  return {from_teacher.sum(-1).mul_(beta).add_(from_student.sum(-1).mul_(1.0 - beta)),
          from_student * (1.0 - beta)};
}

Divergence soft_cross_entropy(const at::Tensor& student, const at::Tensor& teacher) {
  const at::Tensor q = teacher.exp();
  return {weighed(q, teacher, -student).sum(-1), -q};
}

void check_divergence_options(double beta, double temperature) {
  TORCH_CHECK(beta >= 0.0 && beta <= 1.0, "beta must lie in [0, 1], got ", beta);
  TORCH_CHECK(temperature > 0.0, "temperature must be positive, got ", temperature);
}

}  // namespace lossgate::impl
