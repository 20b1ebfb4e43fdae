// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "reference/filter.h"
#include "reference/losses/catalog.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

/// GRPO, 4 x 32, f32, as a trainer would see it: nearly on-policy, a tail of padding.
Case grpo_case() {
  const LossSignature& signature = *find_signature("grpo");
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = 4;
  c.shape[Axis::tokens] = 32;
  std::mt19937_64 engine(1);
  std::normal_distribution<double> normal;
  for (const Field& field : signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    Tensor tensor = Tensor::zeros(dtype, c.shape.of(field.axes));
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double drawn = normal(engine);
      const bool mask = field.role == Role::mask;
      tensor.set(i, mask                        ? static_cast<double>(i % 32 < 24 + i / 32)
                    : field.name == "advantage" ? drawn
                                                : -1.0 + 0.1 * drawn);
    }
    c.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  return c;
}

/// Keeps every entry, as an evaluation does.
template <class S>
struct Kept : Sink<S> {
  std::vector<S> values = std::vector<S>(4 * 32);
  void entry(std::size_t, std::int64_t index, const S& value) override {
    values[static_cast<std::size_t>(index)] = value;
  }
};

void value_and_bound(benchmark::State& state) {
  const Case c = grpo_case();
  const Loss& loss = *find_loss("grpo");
  const Arithmetic arithmetic = plain_arithmetic(Dtype::f32, loss.signature.forms.front());
  Kept<Tracked> kept;
  for (auto _ : state) {
    const Problem problem(loss.signature, c);
    evaluate(loss, problem, arithmetic, kept);
    benchmark::DoNotOptimize(kept.values.data());
  }
  state.SetItemsProcessed(state.iterations());
}

void plain_long_double(benchmark::State& state) {
  const Case c = grpo_case();
  const Loss& loss = *find_loss("grpo");
  Kept<Real> kept;
  for (auto _ : state) {
    const Problem problem(loss.signature, c);
    Grpo::evaluate<Real>(Inputs<Real>(problem, loss.signature.forms.front()),
                         Outputs<Real>(problem, kept));
    benchmark::DoNotOptimize(kept.values.data());
  }
  state.SetItemsProcessed(state.iterations());
}

void value_and_bound_in_double(benchmark::State& state) {
  const Case c = grpo_case();
  const Loss& loss = *find_loss("grpo");
  const Arithmetic arithmetic = plain_arithmetic(Dtype::f32, loss.signature.forms.front());
  const Approximator approximate = approximators_of(loss).front();
  for (auto _ : state) {
    const Problem problem(loss.signature, c);
    benchmark::DoNotOptimize(approximate(problem, arithmetic));
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(value_and_bound);
BENCHMARK(value_and_bound_in_double);
BENCHMARK(plain_long_double);

}  // namespace
}  // namespace lossgate::reference

BENCHMARK_MAIN();
