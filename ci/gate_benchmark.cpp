// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "impl/catalog.h"
#include "properties/property.h"

/// How many cases a second one core asks of one implementation at a time, on GRPO of 4 sequences of
/// 32 tokens: the implementation alone, with reference and bounds for finiteness and agreement (in
/// double where that decides, and in long double alone), and with all core properties.
namespace {

using namespace lossgate;

/// One of many: no two have the same numbers, rows end in different places, and each has an
/// advantage of either sign.
Case typical_case(const LossSignature& signature, std::mt19937_64& engine) {
  std::uniform_int_distribution<std::int64_t> longest(24, 32);
  std::normal_distribution<double> drawn(0.0, 0.1);
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = 4;
  c.shape[Axis::tokens] = 32;
  for (const Field& field : signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    Tensor tensor = Tensor::zeros(dtype, c.shape.of(field.axes));
    for (std::int64_t row = 0; row < 4; ++row) {
      const std::int64_t end = longest(engine);
      const double advantage = 10.0 * drawn(engine);
      for (std::int64_t t = 0; t < 32; ++t) {
        tensor.set(32 * row + t, field.role == Role::mask ? static_cast<double>(t < end)
                                 : field.quantity == Quantity::advantage ? advantage
                                                                         : -0.5 + drawn(engine));
      }
    }
    c.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  c.split.parts = {{0, {0, 1}}, {0, {2, 3}}};
  return c;
}

std::vector<Case> typical_cases(const LossSignature& signature) {
  std::mt19937_64 engine(1);
  std::vector<Case> cases;
  for (int i = 0; i < 64; ++i) cases.push_back(typical_case(signature, engine));
  return cases;
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
  std::vector<Case> cases = typical_cases(signature);
  for (Case& c : cases) c.split = {};  // as finiteness and agreement ask it
  for (std::size_t at = 0; auto _ : state) {
    benchmark::DoNotOptimize(implementation.evaluate(signature, cases[at++ % cases.size()]));
  }
  state.SetItemsProcessed(state.iterations());
}

void ask(benchmark::State& state, const impl::Implementation& implementation,
         const Properties& asked, bool filtered) {
  const reference::Loss& loss = *reference::find_loss("grpo");
  const std::vector<Case> cases = typical_cases(loss.signature);
  int calls = 0;
  for (std::size_t at = 0; auto _ : state) {
    properties::CaseStudy study(loss, cases[at++ % cases.size()]);
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
