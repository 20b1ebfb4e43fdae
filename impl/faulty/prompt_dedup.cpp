// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "impl/faulty/eager.h"
#include "impl/faulty/operations.h"
#include "impl/trainer.h"

namespace lossgate::impl {
namespace {

using Index = std::int64_t;

/// The prompts that a micro-batch sends to the teacher, and which of them each sequence reads.
struct Plan {
  std::vector<Index> scored;
  std::vector<Index> reads;
};

/// Each prompt once, found by its number.
Plan by_number(const Tensor& prompt, Index /*num_generations*/) {
  Plan plan;
  for (Index s = 0; s < prompt.size(); ++s) {
    const Index number = prompt.integer_at(s);
    const auto known = std::ranges::find(plan.scored, number);
    plan.reads.push_back(known - plan.scored.begin());
    if (known == plan.scored.end()) plan.scored.push_back(number);
  }
  return plan;
}

/// Every n-th sequence's prompt, for it and the n - 1 after it.
Plan by_stride(const Tensor& prompt, Index num_generations) {
  Plan plan;
  for (Index s = 0; s < prompt.size(); ++s) {
    if (s % num_generations == 0) plan.scored.push_back(prompt.integer_at(s));
    plan.reads.push_back(s / num_generations);
  }
  return plan;
}

LossResult score(MicroBatch& micro_batch, Plan (*make_plan)(const Tensor&, Index)) {
  const Tensor& prompt = micro_batch.part.batch.at("prompt");
  const auto repeats = static_cast<Index>(micro_batch.part.spec.number("num_generations"));
  const Plan plan = make_plan(prompt, repeats);
  Tensor scored = Tensor::zeros(Dtype::f32, prompt.extents);
  for (Index s = 0; s < prompt.size(); ++s) {
    const Index read = plan.reads[static_cast<std::size_t>(s)];
    scored.set(s, static_cast<double>(plan.scored[static_cast<std::size_t>(read)]));
  }
  LossResult result;
  result.outputs.push_back({"scored_prompt", std::move(scored)});
  result.counts.emplace_back("prompts_scored", static_cast<Index>(plan.scored.size()));
  return result;
}

Implementation implementation(std::string name, Plan (*make_plan)(const Tensor&, Index)) {
  const Step step = [make_plan](MicroBatch& part) { return score(part, make_plan); };
  return eager_implementation(
      {.loss = "prompt_dedup", .source = {"impl/faulty/prompt_dedup.cpp", 22}}, std::move(name),
      step);
}

}  // namespace

std::vector<Implementation> prompt_dedup_implementations() {
  std::vector<Implementation> all = {implementation("eager", by_number),
                                     implementation("every_nth_prompt", by_stride)};
  all.back().fault =
      Fault{.twin = "eager",
            .thread = "https://github.com/huggingface/trl/pull/5407",
            .cause = "pairing by position",
            .trigger = "a group that a micro-batch border cuts, or an incomplete one",
            .killers = {"reference_agreement", "split_invariance"}};
  return all;
}

}  // namespace lossgate::impl
