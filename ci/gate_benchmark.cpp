// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "impl/catalog.h"
#include "properties/property.h"

/// How many cases a second one core asks of one implementation at a time, on GRPO of 4 sequences of
/// 32 tokens: the implementation alone, with reference and bounds for finiteness and agreement (in
/// double where that decides, and in long double alone), and with all core properties.
namespace {

using namespace lossgate;

Case typical_case(const LossSignature& signature) {
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = 4;
  c.shape[Axis::tokens] = 32;
  for (const Field& field : signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    Tensor tensor = Tensor::zeros(dtype, c.shape.of(field.axes));
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const bool padded = i % 32 > 27;
      tensor.set(i, field.role == Role::mask ? !padded : -0.5 - 0.01 * static_cast<double>(i % 17));
    }
    c.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  c.split.parts = {{0, {0, 1}}, {0, {2, 3}}};
  return c;
}

using Properties = std::vector<const properties::Property*>;

Properties core() {
  Properties all;
  for (const properties::Property& property : properties::catalog()) {
    if (property.tier == properties::Tier::core) all.push_back(&property);
  }
  return all;
}

Properties finiteness_and_agreement() {
  return {properties::find_property("finite_forward"), properties::find_property("finite_backward"),
          properties::find_property("reference_agreement")};
}

void alone(benchmark::State& state, const impl::Implementation& implementation) {
  const LossSignature& signature = *reference::find_signature("grpo");
  Case c = typical_case(signature);
  c.split = {};  // as finiteness and agreement ask it
  for (auto _ : state) benchmark::DoNotOptimize(implementation.evaluate(signature, c));
  state.SetItemsProcessed(state.iterations());
}

void ask(benchmark::State& state, const impl::Implementation& implementation,
         const Properties& asked, bool filtered) {
  const reference::Loss& loss = *reference::find_loss("grpo");
  const Case c = typical_case(loss.signature);
  int calls = 0;
  for (auto _ : state) {
    properties::CaseStudy study(loss, c);
    study.filtered = filtered;
    properties::Evaluation evaluation(study, implementation);
    benchmark::DoNotOptimize(properties::check_all(evaluation, asked, true));
    calls = evaluation.calls();
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["calls"] = calls;
}

}  // namespace

int main(int argc, char** argv) {
  for (const impl::Implementation& implementation : impl::catalog(true)) {
    if (implementation.loss != "grpo" || implementation.fault) continue;
    const std::string name = "/grpo/4x32/" + implementation.name;
    benchmark::RegisterBenchmark(("alone" + name).c_str(),
                                 [&](auto& state) { alone(state, implementation); });
    benchmark::RegisterBenchmark(("finite_and_agrees" + name).c_str(), [&](auto& state) {
      ask(state, implementation, finiteness_and_agreement(), true);
    });
    benchmark::RegisterBenchmark(("in_long_double" + name).c_str(), [&](auto& state) {
      ask(state, implementation, finiteness_and_agreement(), false);
    });
    benchmark::RegisterBenchmark(("gate" + name).c_str(),
                                 [&](auto& state) { ask(state, implementation, core(), true); });
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
