// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/mask.h"

#include <algorithm>

namespace lossgate::fuzz {
namespace {

constexpr Share<MaskForm> kForms[] = {
    {MaskForm::ones, {4, 2, 1}},         {MaskForm::right_padding, {8, 4, 2}},
    {MaskForm::left_padding, {1, 1, 2}}, {MaskForm::both_sides, {1, 2, 2}},
    {MaskForm::holes, {1, 4, 2}},        {MaskForm::random, {0, 3, 2}},
    {MaskForm::one_row, {0, 2, 1}},      {MaskForm::single_token, {0, 1, 1}},
    {MaskForm::one_per_row, {0, 1, 1}},  {MaskForm::one_row_empty, {0, 3, 2}},
    {MaskForm::zeros, {0, 1, 1}},
};

void draw_row(MaskForm form, std::span<std::uint8_t> row, Choices& choices) {
  const auto tokens = static_cast<std::int64_t>(row.size());
  const auto keep = [&](std::int64_t begin, std::int64_t length) {
    std::fill_n(row.begin() + begin, length, std::uint8_t{1});
  };
  switch (form) {
    case MaskForm::ones:
      return keep(0, tokens);
    case MaskForm::one_row:
    case MaskForm::one_row_empty:
    case MaskForm::right_padding:
      return keep(0, tokens - choices.integer(0, tokens - 1));
    case MaskForm::left_padding: {
      const std::int64_t padding = choices.integer(0, tokens - 1);
      return keep(padding, tokens - padding);
    }
    case MaskForm::both_sides: {
      const std::int64_t begin = choices.integer(0, tokens - 1);
      return keep(begin, tokens - begin - choices.integer(0, tokens - begin - 1));
    }
    case MaskForm::holes: {
      // Between tokens that count, as the output of a tool.
      keep(0, tokens);
      if (tokens < 3) return;
      const std::int64_t begin = choices.integer(1, tokens - 2);
      std::fill_n(row.begin() + begin, choices.integer(1, tokens - 1 - begin), std::uint8_t{0});
      return;
    }
    case MaskForm::random:
      for (std::uint8_t& position : row) position = choices.sometimes(0.5);
      return;
    case MaskForm::one_per_row:
      return keep(choices.integer(0, tokens - 1), 1);
    case MaskForm::single_token:
    case MaskForm::zeros:
      return;
  }
}

}  // namespace

MaskForm pick_mask_form(Temper temper, Choices& choices) { return pick(kForms, temper, choices); }

void draw_mask(MaskForm form, std::int64_t sequences, std::int64_t tokens, Choices& choices,
               std::span<std::uint8_t> valid) {
  std::ranges::fill(valid, std::uint8_t{0});
  const auto row = [&](std::int64_t s) {
    return valid.subspan(static_cast<std::size_t>(s * tokens), static_cast<std::size_t>(tokens));
  };
  for (std::int64_t s = 0; s < sequences; ++s) draw_row(form, row(s), choices);
  if (form == MaskForm::one_row_empty || form == MaskForm::one_row) {
    const std::int64_t chosen = choices.integer(0, sequences - 1);
    for (std::int64_t s = 0; s < sequences; ++s) {
      if ((s == chosen) == (form == MaskForm::one_row_empty)) {
        std::ranges::fill(row(s), std::uint8_t{0});
      }
    }
  }
  if (form == MaskForm::single_token) {
    valid[static_cast<std::size_t>(choices.integer(0, sequences * tokens - 1))] = 1;
  }
}

void revive_rows(std::span<std::uint8_t> valid, std::span<const std::uint8_t> candidates,
                 std::int64_t tokens, Choices& choices) {
  if (std::ranges::find(valid, std::uint8_t{1}) == valid.end()) return;
  const auto length = static_cast<std::size_t>(tokens);
  for (std::size_t begin = 0; begin < valid.size(); begin += length) {
    const auto row = valid.subspan(begin, length);
    if (std::ranges::find(row, std::uint8_t{1}) != row.end()) continue;
    const auto allowed = candidates.subspan(begin, length);
    const std::int64_t count = std::ranges::count(allowed, std::uint8_t{1});
    std::int64_t left = choices.integer(0, std::max<std::int64_t>(count, 1) - 1);
    for (std::size_t t = 0; t < length; ++t) {
      if (allowed[t] && left-- == 0) row[t] = 1;
    }
  }
}

void draw_inner_mask(const Column& column, Temper temper, Choices& choices) {
  Tensor& mask = *column.tensor;
  const bool list = mask.extents.size() > 1;
  const std::int64_t row = list ? mask.extents.back() : 1;
  const double holes = list && temper == Temper::plain ? 0.1 : choices.real(0.0, 1.0);
  for (std::int64_t i = 0; i < mask.size(); ++i) {
    mask.set(i, (list && i % row == 0) || !choices.sometimes(holes));
  }
}

}  // namespace lossgate::fuzz
