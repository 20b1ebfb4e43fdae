// SPDX-License-Identifier: Apache-2.0
// Prints one batch, and what ranks.py must find for it on any number of ranks: loss and gradient of
// the whole batch in one call, with the sums of magnitudes that bound what another order of
// summation may change. One line each: a name, then numbers in hexadecimal.
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>
#include <limits>
#include <string>

#include "impl/torch/grpo.h"

namespace {

using namespace lossgate;
using namespace lossgate::impl;

constexpr std::int64_t kSequences = 5, kTokens = 4, kMaxLength = 7;

void print(const std::string& name, const at::Tensor& values) {
  std::printf("%s", name.c_str());
  const at::Tensor flat = values.detach().to(at::kDouble).flatten();
  for (std::int64_t i = 0; i < flat.size(0); ++i) std::printf(" %a", flat[i].item<double>());
  std::printf("\n");
}

/// Rows of 4, 1, 0, 2 and 3 valid positions; the others hold what trainers leave there.
at::Tensor uneven_mask() {
  const at::Tensor lengths = at::tensor({4, 1, 0, 2, 3}, at::kLong).unsqueeze(1);
  return at::arange(kTokens).unsqueeze(0) < lengths;
}

at::Tensor wave(double amplitude, double frequency, double offset, const at::Tensor& mask,
                double sentinel) {
  const at::Tensor index = at::arange(kSequences * kTokens, at::kDouble);
  const at::Tensor values = (index * frequency).sin().mul(amplitude).add(offset);
  return at::where(mask, values.view({kSequences, kTokens}), sentinel);
}

}  // namespace

int main() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const at::Tensor mask = uneven_mask();
  const at::Tensor log_prob = wave(0.9, 1.3, -1.5, mask, -kInf);
  const at::Tensor old_log_prob = wave(0.8, 1.1, -1.4, mask, 0.0);
  const at::Tensor ref_log_prob =
      wave(0.7, 1.7, -1.6, mask, std::numeric_limits<double>::quiet_NaN());
  const at::Tensor advantage = wave(2.0, 2.3, 0.3, mask, 1e300);
  std::printf("shape %lld %lld %lld\n", static_cast<long long>(kSequences),
              static_cast<long long>(kTokens), static_cast<long long>(kMaxLength));
  print("log_prob", log_prob);
  print("old_log_prob", old_log_prob);
  print("ref_log_prob", ref_log_prob);
  print("advantage", advantage);
  print("mask", mask);

  const at::Tensor valid = mask.sum(1);
  for (Reduction reduction : {Reduction::token_mean, Reduction::sequence_mean,
                              Reduction::seq_mean_token_sum_norm, Reduction::sum}) {
    for (const char* level : {"token", "sequence"}) {
      const at::Tensor leaf = log_prob.clone().requires_grad_();
      PolicyOptions options;
      options.sequence_level = parse_level(level);
      const ReductionPlan plan{.reduction = reduction,
                               .total_tokens = valid.sum().item<std::int64_t>(),
                               .total_sequences = (valid > 0).sum().item<std::int64_t>(),
                               .max_length = kMaxLength};
      const auto [loss, terms] =
          grpo(leaf, old_log_prob, ref_log_prob, advantage, mask, options, plan);
      const at::Tensor gradient = torch::autograd::grad({loss}, {leaf})[0];
      const std::string what = std::string(name(reduction)) + "/" + level;
      print(what + "/loss", loss);
      print(what + "/loss_magnitude", scaled(terms.detach(), mask, plan).abs().sum());
      print(what + "/gradient", gradient);
    }
  }
  return 0;
}
