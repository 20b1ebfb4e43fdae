// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "reference/filter.h"
#include "reference/losses/catalog.h"
#include "reference/reference.h"

namespace lossgate::reference {
namespace {

/// As a trainer would see it: nearly on-policy, a tail of padding.
Case typical_case(const LossSignature& signature, std::int64_t sequences, std::int64_t tokens,
                  std::int64_t vocab = 1) {
  Case c;
  c.spec = standard_spec(signature);
  c.shape[Axis::sequences] = sequences;
  c.shape[Axis::tokens] = tokens;
  c.shape[Axis::vocab] = vocab;
  std::mt19937_64 engine(1);
  std::normal_distribution<double> normal;
  for (const Field& field : signature.fields) {
    const Dtype dtype = field.dtypes.empty() ? Dtype::f32 : field.dtypes.front();
    Tensor tensor = Tensor::zeros(dtype, c.shape.of(field.axes));
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double drawn = normal(engine);
      const bool valid = i % tokens < tokens * 3 / 4 + i / tokens;
      tensor.set(i, field.role == Role::mask               ? static_cast<double>(valid)
                    : field.role == Role::label            ? static_cast<double>(i % vocab)
                    : field.quantity == Quantity::log_prob ? -1.0 + 0.1 * drawn
                                                           : drawn);
    }
    c.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  return c;
}

Case grpo_case() { return typical_case(*find_signature("grpo"), 4, 32); }

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

/// Of so many tokens, or vocabulary entries, and nothing kept: the cost grows with them, no faster.
void value_and_bound_of(benchmark::State& state, const char* id, std::int64_t tokens,
                        std::int64_t vocab) {
  struct Dropped final : Sink<Tracked> {
    void entry(std::size_t, std::int64_t, const Tracked& value) override {
      benchmark::DoNotOptimize(value.v);
    }
  } dropped;
  const Loss& loss = *find_loss(id);
  const Case c = typical_case(loss.signature, 1, tokens, vocab);
  const Arithmetic arithmetic = plain_arithmetic(Dtype::f32, loss.signature.forms.front());
  for (auto _ : state) {
    const Problem problem(loss.signature, c);
    evaluate(loss, problem, arithmetic, dropped);
  }
  state.SetItemsProcessed(state.iterations() * tokens * vocab);
}

void value_and_bound_of_grpo(benchmark::State& state) {
  value_and_bound_of(state, "grpo", state.range(0), 1);
}

void value_and_bound_of_log_prob(benchmark::State& state) {
  value_and_bound_of(state, "log_prob", 2, state.range(0));
}

BENCHMARK(value_and_bound);
BENCHMARK(value_and_bound_in_double);
BENCHMARK(plain_long_double);
BENCHMARK(value_and_bound_of_grpo)->ArgName("tokens")->RangeMultiplier(8)->Range(64, 32768);
BENCHMARK(value_and_bound_of_log_prob)->ArgName("vocab")->RangeMultiplier(8)->Range(64, 32768);

}  // namespace
}  // namespace lossgate::reference

BENCHMARK_MAIN();
