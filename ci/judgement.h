// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "corpora/dump.h"
#include "impl/external/rerun.h"

namespace lossgate::ci {

/// What a dump shows of the loss that it was taken around, without knowing what that computes.
struct Judgement {
  enum class Word { innocent, guilty, not_reproduced };
  Word word = Word::innocent;
  std::string why = {};    ///< of innocence: what was seen, and where to look
  std::string place = {};  ///< of guilt: the entry at fault, "log_prob[1, 3]"
  /// Row and token of the dump, -1 where the entry has none.
  std::int64_t row = -1, token = -1;
  std::string cause = {};    ///< a name of properties/causes.h
  std::string because = {};  ///< the experiment that named it
  std::optional<impl::GuiltyLine> line = {};
};

/// The function on a dump, with its guilty line where the flag asks for it.
using RunAgain = std::function<impl::Rerun(const corpora::Dump&, bool explain)>;

/// Whether what was observed, the loss and the gradients of its inputs, is finite.
bool observed_finite(const corpora::Dump& dump);

/// Whether a function on this device, with these versions, runs on what the dump was left on.
bool runs_as_there(const corpora::Dump& dump, std::string_view device,
                   const impl::Greeting& greeting);

/// Runs the function again on the dump and on dumps that differ from it in one thing: other numbers
/// behind the mask, finite inputs, no loss scale, a token in every row. An innocent loss is one
/// whose gradients are finite, or one that was given what no loss can be finite for. Of a function
/// that `shifts` labels itself, a row of logits counts where the next label does. Throws InputError
/// where the function raises.
Judgement judge(const corpora::Dump& dump, const RunAgain& run, bool shifts = false);

/// Which of the [rows, tokens] count, by the mask or the labels that the dump holds; nothing where
/// it holds neither.
std::optional<std::vector<bool>> counted_positions(const corpora::Dump& dump);

}  // namespace lossgate::ci
