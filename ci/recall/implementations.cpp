// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "impl/catalog.h"
#include "impl/external/c/lossgate.h"
#include "impl/parts.h"
#include "impl/trainer.h"
#include "reference/reference.h"

/// Our own implementations as a user's shared library: `implementation` is the one that
/// LOSSGATE_IMPLEMENTATION names, as far as it can be asked for one micro-batch at a time.
namespace lossgate::impl {
namespace {

static_assert(LOSSGATE_F64 == static_cast<int>(Dtype::f64) &&
              LOSSGATE_BOOL == static_cast<int>(Dtype::boolean));

/// The call that is under way.
lossgate_call* asked = nullptr;

std::int64_t fact(const char* name) {
  return static_cast<std::int64_t>(asked->number(asked, name));
}

Tensor tensor_of(const lossgate_array& array) {
  Tensor tensor;
  tensor.dtype = static_cast<Dtype>(array.dtype);
  tensor.extents.assign(array.extents, array.extents + array.ndim);
  const auto* data = static_cast<const std::byte*>(array.data);
  const auto bytes =
      static_cast<std::size_t>(element_count(tensor.extents)) * size_of(tensor.dtype);
  tensor.bytes.assign(data, data + bytes);
  return tensor;
}

Case case_of(const LossSignature& signature) {
  Case c;
  c.spec = standard_spec(signature);
  c.spec.reduction = *parse_reduction(asked->word(asked, "reduction"));
  for (const Option& option : signature.options) {
    const std::string word = asked->word(asked, option.name.c_str());
    if (word == "none") {
      c.spec.set(option.name, None{});
    } else if (option.kind == Option::Kind::choice) {
      c.spec.set(option.name, word);
    } else {
      c.spec.set(option.name, asked->number(asked, option.name.c_str()));
    }
  }
  for (const Field& field : signature.fields) {
    Tensor tensor = tensor_of(*asked->array(asked, field.name.c_str()));
    for (std::size_t i = 0; i < field.axes.size(); ++i) {
      if (c.shape[field.axes[i]] < 0) c.shape[field.axes[i]] = tensor.extents[i];
    }
    c.batch.fields.emplace_back(field.name, std::move(tensor));
  }
  c.upstream = asked->number(asked, "upstream");
  return c;
}

int refuse(int status, const std::string& why) {
  std::snprintf(asked->message, sizeof asked->message, "%s", why.c_str());
  return status;
}

int fill(const LossResult& result) {
  if (result.refusal) {
    const bool beyond = result.refusal->argument == kNotComputed;
    return refuse(beyond ? LOSSGATE_NOT_COMPUTED : LOSSGATE_REFUSED,
                  result.refusal->argument + ": " + result.refusal->message);
  }
  for (const Output& output : result.outputs) {
    const lossgate_array& array = *asked->array(asked, output.name.c_str());
    const auto dtype = static_cast<Dtype>(array.dtype);
    auto* data = static_cast<std::byte*>(array.data);
    if (dtype == output.tensor.dtype) {
      std::memcpy(data, output.tensor.bytes.data(), output.tensor.bytes.size());
      continue;
    }
    for (std::int64_t i = 0; i < output.tensor.size(); ++i) {
      encode(dtype, output.tensor.at(i), data + static_cast<std::size_t>(i) * size_of(dtype));
    }
  }
  return LOSSGATE_DONE;
}

const Implementation& chosen(const std::string& loss) {
  const char* name = std::getenv("LOSSGATE_IMPLEMENTATION");
  for (const Implementation& implementation : catalog(false)) {
    if (implementation.loss == loss && name && implementation.name == name) return implementation;
  }
  std::fprintf(stderr, "no implementation '%s' of %s\n", name ? name : "", loss.c_str());
  std::abort();
}

/// What a step has written over lies in the caller's arrays.
void hand_back(const LossSignature& signature, const Case& before, const Case& after) {
  std::vector<std::string> mutated;
  note_mutations(signature, before, after, nullptr, mutated);
  for (const std::string& name : mutated) {
    const Tensor& tensor = after.batch.at(name);
    std::memcpy(asked->array(asked, name.c_str())->data, tensor.bytes.data(), tensor.bytes.size());
  }
}

/// What a trainer does to the whole step before it deals it out, where there is only one part.
void prepare(const LossSignature& signature, Case& part, const Trainer& trainer) {
  if (fact("micro_batches") > 1 || fact("world") > 1) {
    throw Refusal{kNotComputed, -1, -1, "it prepares the whole step"};
  }
  trainer.prepare(signature, part);
}

}  // namespace

Totals count_totals(const LossSignature& signature, const Case& c) {
  const Positions positions = find_positions(signature, c);
  return {positions.tokens, positions.sequences};
}

/// Stands before that of the library, which is then not taken from the archive: the trainer is the
/// gate, so this is one call for one micro-batch, scaled so that what trainers add up is what the
/// implementation's own trainer would have made of it.
LossResult train(const LossSignature& signature, const Case& c, const Step& step,
                 const Trainer& trainer) {
  LossResult result;
  try {
    if (trainer.check) trainer.check(signature, c);
    Case part = c;
    if (trainer.prepare) prepare(signature, part, trainer);
    const Positions positions = find_positions(signature, part);
    const auto rows = static_cast<std::int64_t>(positions.row_tokens.size());  // of this call alone
    MicroBatch batch{.signature = signature,
                     .part = part,
                     .positions = positions,
                     .totals = {fact("total_tokens"), fact("total_sequences"), rows},
                     .rank_totals = {fact("rank_tokens"), fact("rank_sequences"), rows},
                     .rank = static_cast<int>(fact("rank")),
                     .world = static_cast<int>(fact("world")),
                     .index = static_cast<int>(fact("micro_batch")),
                     .count = static_cast<int>(fact("micro_batches"))};
    const Case before = part;
    result = step(batch);
    hand_back(signature, before, part);
    double factor = trainer.mean_over_micro_batches ? 1.0 / batch.count : 1.0;
    if (trainer.all_reduce == Trainer::AllReduce::mean) factor /= batch.world;
    for (int i = 0; i < trainer.world_power; ++i) factor *= batch.world;
    for (Output& output : result.outputs) {
      const bool scaled = output.name == "loss" || output.name.starts_with("gradient.");
      for (std::int64_t i = 0; scaled && factor != 1.0 && i < output.tensor.size(); ++i) {
        output.tensor.set(i, output.tensor.at(i) * factor);
      }
    }
  } catch (const Refusal& refusal) {
    result.refusal = refusal;
  }
  return result;
}

}  // namespace lossgate::impl

LOSSGATE_LOSS(implementation, "*") {
  using namespace lossgate;
  impl::asked = call;
  const std::string loss = call->word(call, "loss");
  const LossSignature& signature = *reference::find_signature(loss);
  const impl::Implementation& chosen = impl::chosen(loss);
  const Case c = impl::case_of(signature);
  if (chosen.fault && chosen.fault->cause == "strides ignored") {
    return impl::refuse(LOSSGATE_NOT_COMPUTED, "a library's arrays have no strides to ignore");
  }
  if (const auto why = chosen.unsupported(c)) return impl::refuse(LOSSGATE_NOT_COMPUTED, *why);
  return impl::fill(chosen.evaluate(signature, c));
}
