// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/options.h"
#include "reference/problem.h"

namespace lossgate::reference {

/// Scoring each prompt once although it is repeated for several generations (an operation: tensors
/// in, tensors out).
///
/// Formula: scored_prompt[s] = prompt[s]: every sequence gets the score of its own prompt. The
///   score of a prompt is taken to be its number, so that the output tells whose score arrived.
/// Shapes: prompt, scored_prompt [sequences]. Gradient: none.
/// Error: taking every num_generations-th sequence is right only while no micro-batch border cuts a
///   group and every group is complete.
/// Source: huggingface/trl#5407, de-duplication by `[::num_generations]`.
struct PromptDedup {
  static LossSignature signature() {
    return {
        .id = "prompt_dedup",
        .title = "prompts that are scored once for all their generations",
        .formula = "scored_prompt[s] = prompt[s]",
        .source = "huggingface/trl#5407",
        .options = {{.name = "num_generations",
                     .kind = Option::Kind::integer,
                     .standard = 4.0,
                     .low = 1.0,
                     .high = 64.0,
                     .doc = "how often the trainer repeats a prompt; a group may be incomplete"}},
        .fields = {{.name = "prompt",
                    .role = Role::group,
                    .quantity = Quantity::group,
                    .axes = {Axis::sequences},
                    .dtypes = {Dtype::i64},
                    .doc = "number of the prompt that the sequence answers"}},
        .outputs = {{.name = "scored_prompt",
                     .axes = {Axis::sequences},
                     .doc = "number of the prompt whose score the sequence got"}},
    };
  }

  template <class S>
  static void evaluate(const Inputs<S>& in, const Outputs<S>& out) {
    const auto prompt = in.field("prompt");
    const auto write = out.writer("scored_prompt");
    for (std::int64_t s = 0; s < in.sequences(); ++s) write(prompt(s), s);
  }
};

}  // namespace lossgate::reference
