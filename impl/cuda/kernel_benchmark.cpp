// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "impl/cuda/host_forms.h"
#ifdef LOSSGATE_CUDA
#include "impl/cuda/device_form.h"
#endif

/// Kernels on rows of logits, counted in the bytes that must move: every logit is read once, every
/// gradient written once. A copy of as many bytes by the same machine is the limit.
namespace {

using namespace lossgate;
using namespace lossgate::impl;

/// Logits, labels and log-probs of one sequence.
template <class Form, class Stored>
struct Batch {
  Batch(std::int64_t tokens, std::int64_t vocab)
      : logits(kDtype<Stored>, {1, tokens, vocab}, Layout::contiguous, Form::memory()),
        teacher(kDtype<Stored>, {1, tokens, vocab}, Layout::contiguous, Form::memory()),
        gradient(kDtype<Stored>, {1, tokens, vocab}, Layout::contiguous, Form::memory()),
        numbers(Dtype::f32, {1, tokens}, Layout::contiguous, Form::memory()),
        labels(Dtype::i64, {1, tokens}, Layout::contiguous, Form::memory()),
        counts(Dtype::i64, {1, 1}, Layout::contiguous, Form::memory()),
        values(Dtype::f32, {1, tokens}, Layout::contiguous, Form::memory()),
        weighted(Dtype::f32, {1, tokens}, Layout::contiguous, Form::memory()) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      numbers.template as<float>().data[t] = -1.0f;
      labels.template as<std::int64_t>().data[t] = (t * 7919) % vocab;
    }
    batch.sequences = 1;
    batch.tokens = tokens;
    fill(logits, 37, 101);
    fill(teacher, 53, 97);
    batch.validity.labels.wide = labels.template as<const std::int64_t>();
    batch.row_tokens = counts.template as<std::int64_t>().data;
    batch.per_token = values.template as<float>();
    batch.weighted = weighted.template as<float>();
  }

  LogitsGrpoArrays<Stored> grpo() {
    LogitsGrpoArrays<Stored> arrays;
    arrays.grpo.batch = batch;
    arrays.grpo.options.clip = {.low = 0.8f, .high = 1.2f, .dual = {}};
    arrays.grpo.options.kl_penalty = 0.04f;
    const auto constant = numbers.template as<const float>();
    arrays.grpo.old_log_prob = arrays.grpo.ref_log_prob = arrays.grpo.advantage = constant;
    arrays.vocab = vocab();
    arrays.labels = batch.validity.labels;
    arrays.logits = logits.template as<const Stored>();
    arrays.gradient = gradient.template as<Stored>();
    return arrays;
  }

  JsdArrays<Stored> jsd() {
    JsdArrays<Stored> arrays;
    arrays.batch = batch;
    arrays.options = {0.5f, 0.5f, -0.6931472f, -0.6931472f};
    arrays.vocab = vocab();
    arrays.student = logits.template as<const Stored>();
    arrays.teacher = teacher.template as<const Stored>();
    arrays.gradient = gradient.template as<Stored>();
    return arrays;
  }

  std::int64_t vocab() { return logits.template as<Stored>().token_stride; }

  /// Every token has the same row.
  void fill(LaidOut& rows, std::int64_t step, std::int64_t period) {
    Stored* const row = rows.template as<Stored>().data;
    for (std::int64_t i = 0; i < vocab(); ++i)
      store(static_cast<float>((i * step) % period) * 0.1f, row + i);
    for (std::int64_t t = 1; t < batch.tokens; ++t) std::copy_n(row, vocab(), row + t * vocab());
  }

  LaidOut logits, teacher, gradient, numbers, labels, counts, values, weighted;
  TokenArrays batch;
};

/// Made once for all losses and repetitions: a GPU's takes far longer to write than to time.
template <class Form, class Stored>
Batch<Form, Stored>& batch_of(std::int64_t tokens, std::int64_t vocab) {
  static std::map<std::pair<std::int64_t, std::int64_t>, Batch<Form, Stored>> made;
  const auto size = std::pair(tokens, vocab);
  return made.try_emplace(size, tokens, vocab).first->second;
}

/// `arrays` of `moves` numbers for each token and vocabulary entry.
template <class Form, class Stored, class Arrays>
void run(benchmark::State& state, Arrays (Batch<Form, Stored>::*arrays)(), int moves) {
  const Arrays asked = (batch_of<Form, Stored>(state.range(0), state.range(1)).*arrays)();
  benchmark::DoNotOptimize(Form::loss(asked));  // what the host wrote moves to the device
  for (auto _ : state) benchmark::DoNotOptimize(Form::loss(asked));
  state.SetBytesProcessed(state.iterations() * state.range(0) * state.range(1) * moves *
                          static_cast<std::int64_t>(sizeof(Stored)));
  state.SetComplexityN(state.range(0) * state.range(1));
}

template <class Form>
void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0) * state.range(1) * 2);
  std::byte* const from = Form::memory().allocate(bytes);
  std::byte* const to = Form::memory().allocate(bytes);
  std::memset(from, 1, bytes);
  Form::copy(to, from, bytes);
  for (auto _ : state) {
    Form::copy(to, from, bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * bytes));
  Form::memory().release(from);
  Form::memory().release(to);
}

/// How many tokens a batch with that vocabulary has.
using TokensOf = std::int64_t (*)(std::int64_t vocab);

template <class Form, class Stored>
void add(const std::string& form, const std::string& dtype, TokensOf tokens_of) {
  for (std::int64_t vocab : {4096, 32768, 131072}) {
    const auto register_one = [&](const std::string& loss, auto&& function) {
      benchmark::RegisterBenchmark((loss + "/" + dtype + "/" + form).c_str(), function)
          ->Args({tokens_of(vocab), vocab})
          ->UseRealTime();
    };
    register_one("logits_grpo",
                 [](benchmark::State& s) { run<Form, Stored>(s, &Batch<Form, Stored>::grpo, 2); });
    register_one("jsd",
                 [](benchmark::State& s) { run<Form, Stored>(s, &Batch<Form, Stored>::jsd, 3); });
  }
}

template <class Form>
void add_all(const std::string& form, TokensOf tokens_of) {
  benchmark::RegisterBenchmark(("copy/" + form).c_str(), copy<Form>)
      ->Args({tokens_of(131072), 131072})
      ->UseRealTime();
  add<Form, float>(form, "f32", tokens_of);
  add<Form, Bf16>(form, "bf16", tokens_of);
}

}  // namespace

int main(int argc, char** argv) {
  add_all<HostForm<LoopBlocks>>("kernel_loop", [](std::int64_t) -> std::int64_t { return 4; });
#ifdef LOSSGATE_CUDA
  // As many numbers whatever the vocabulary: fewer would stay in the device's cache.
  if (has_gpu()) {
    add_all<DeviceForm>("kernel_gpu", [](std::int64_t vocab) { return (1 << 26) / vocab; });
  }
#endif
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
