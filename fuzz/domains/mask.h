// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

/// Which positions of a [sequences, tokens] rectangle count.
enum class MaskForm {
  ones,
  right_padding,  ///< responses of different lengths, aligned left
  left_padding,   ///< prompts, aligned right
  both_sides,     ///< every sequence with an offset of its own
  holes,          ///< tool output amid a response
  random,
  single_token,  ///< one valid position in the whole batch
  one_per_row,
  one_row_empty,  ///< ragged, and one sequence wholly masked
  one_row,        ///< ragged, and all other sequences wholly masked
  zeros,
};

inline constexpr MaskForm kAllMaskForms[] = {
    MaskForm::ones,          MaskForm::right_padding, MaskForm::left_padding, MaskForm::both_sides,
    MaskForm::holes,         MaskForm::random,        MaskForm::single_token, MaskForm::one_per_row,
    MaskForm::one_row_empty, MaskForm::one_row,       MaskForm::zeros};

MaskForm pick_mask_form(Temper temper, Choices& choices);

/// Writes 1 where a position counts and 0 elsewhere; `valid` has sequences * tokens entries.
void draw_mask(MaskForm form, std::int64_t sequences, std::int64_t tokens, Choices& choices,
               std::span<std::uint8_t> valid);

/// Where something is valid, gives every row of `tokens` positions without any one of those that
/// are 1 in `candidates`.
void revive_rows(std::span<std::uint8_t> valid, std::span<const std::uint8_t> candidates,
                 std::int64_t tokens, Choices& choices);

/// A mask below the positions, over the support, say: the first entry of a row always counts. What
/// is said of sequences may be so of all of them, or of none.
void draw_inner_mask(const Column& column, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
