// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/profile.h"
#include "reference/spec/case.h"

namespace lossgate::fuzz {

enum class SplitForm {
  whole,
  halves,       ///< two micro-batches of about the same size
  of_one_size,  ///< micro-batches of one size, on a rank or two; the last has what is left
  one_by_one,   ///< a micro-batch per sequence
  ranks,        ///< a part per rank
  random,       ///< any partition over up to four ranks
  empty_parts,  ///< random, and some parts hold nothing
  idle_rank,    ///< random, and the last rank has no part, or the last seven, or 63
  shuffled,     ///< random, the sequences out of order
};

inline constexpr SplitForm kAllSplitForms[] = {
    SplitForm::whole,       SplitForm::halves,    SplitForm::of_one_size,
    SplitForm::one_by_one,  SplitForm::ranks,     SplitForm::random,
    SplitForm::empty_parts, SplitForm::idle_rank, SplitForm::shuffled};

SplitForm pick_split_form(Temper temper, Choices& choices);

/// Deals every sequence to exactly one part.
Split draw_split(SplitForm form, std::int64_t sequences, Choices& choices);

/// All micro-batches on one rank.
void gather(Split& split);

/// Deals the case's sequences as callers of the signature do, who may have one rank, or parts as
/// large as each other.
void split_sequences(const LossSignature& signature, Temper temper, Case& c, Choices& choices);

}  // namespace lossgate::fuzz
