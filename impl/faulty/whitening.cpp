// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "impl/faulty/eager.h"
#include "impl/faulty/operations.h"
#include "impl/faulty/standardise.h"
#include "impl/trainer.h"

namespace lossgate::impl {
namespace {

using Index = std::int64_t;

struct WhiteningOptions {
  VarianceFault variance = VarianceFault::none;
  bool counts_masked = false;  ///< as zeros
  bool whitens_masked = false;
};

template <class F>
LossResult whiten(const MicroBatch& batch, const WhiteningOptions& options) {
  const Tensor& advantage = batch.part.batch.at("advantage");
  const LossSpec& spec = batch.part.spec;
  const auto valid = [&](Index at) {
    return batch.positions.valid[static_cast<std::size_t>(at)] != 0;
  };
  std::vector<F> numbers;
  for (Index at = 0; at < advantage.size(); ++at) {
    if (valid(at)) numbers.push_back(static_cast<F>(advantage.at(at)));
    if (!valid(at) && options.counts_masked) numbers.push_back(F(0));
  }
  const EagerWhitener<F> whitened(numbers, spec.number("epsilon"), options.variance);
  Tensor result = Tensor::zeros(sizeof(F) == 8 ? Dtype::f64 : Dtype::f32, advantage.extents);
  for (Index at = 0; at < advantage.size(); ++at) {
    if (!valid(at) && !options.whitens_masked) continue;
    F own = whitened(valid(at) ? static_cast<F>(advantage.at(at)) : F(0));
    if (spec.number("shift_mean") == 0.0) own += whitened.mean();
    result.set(at, static_cast<double>(own));
  }
  LossResult outputs;
  outputs.outputs.push_back({"whitened", std::move(result)});
  return outputs;
}

Implementation implementation(std::string name, const WhiteningOptions& options) {
  const Step step = [options](MicroBatch& batch) {
    const bool wide = batch.part.batch.at("advantage").dtype == Dtype::f64;
    return wide ? whiten<double>(batch, options) : whiten<float>(batch, options);
  };
  return eager_implementation({.loss = "whitening", .source = {"impl/faulty/whitening.cpp", 1}},
                              std::move(name), step);
}

Implementation faulty(std::string name, const WhiteningOptions& options, Fault why) {
  return with_fault(implementation(std::move(name), options), std::move(why));
}

}  // namespace

std::vector<Implementation> whitening_implementations() {
  std::vector<Implementation> all = {implementation("eager", {})};
  all.push_back(faulty("masked_counted", {.counts_masked = true},
                       {.twin = "eager",
                        .thread = "https://github.com/ray-project/ray/pull/63900",
                        .cause = "padding counted",
                        .trigger = "a masked position",
                        .killers = {"reference_agreement", "padding_invariance"}}));
  all.push_back(faulty("masked_whitened", {.whitens_masked = true},
                       {.twin = "eager",
                        .thread = "https://github.com/verl-project/verl/blob/main/verl/trainer/ppo/"
                                  "core_algos.py",
                        .cause = "disagrees with the formula",
                        .trigger = "a masked position: it gets what a 0 becomes",
                        .killers = {"reference_agreement"}}));
  all.push_back(faulty("variance_of_one", {.variance = VarianceFault::of_one},
                       {.twin = "eager",
                        .thread = "https://github.com/alibaba/ROLL/issues/475",
                        .cause = "empty divisor",
                        .trigger = "one valid token: 0/0",
                        .killers = {"finite_forward"}}));
  all.push_back(faulty("mean_of_squares", {.variance = VarianceFault::of_squares},
                       {.twin = "eager",
                        .thread = "https://github.com/THUDM/slime/blob/main/slime/utils/"
                                  "distributed_utils.py",
                        .cause = "cancellation",
                        .trigger = "equal advantages, or an offset larger than their spread",
                        .killers = {"reference_agreement"}}));
  return all;
}

}  // namespace lossgate::impl
