// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "properties/verdict.h"
#include "reference/spec/case.h"

/// Values and places as people read them.
namespace lossgate::report {

/// Shortest decimal that reads back; inf, -inf, nan.
std::string decimal(double value);

/// Enough digits to see where a Real differs from a neighbouring double.
std::string decimal(reference::Real value);

/// Few digits, for ratios and bounds.
std::string brief(double value);

/// "-0.5 (0xbf000000)".
std::string with_bits(Dtype dtype, const std::byte* bits);
std::string with_bits(Dtype dtype, double value);

/// A number, the name of a choice, or "none".
std::string option_text(const OptionValue& value);

/// "gradient.log_prob[1, 3], a masked position".
std::string place_text(const properties::Place& place);

/// What the loss read at the place, one "field value (bits)" each; for a place without a sequence,
/// the range of each field.
std::vector<std::string> inputs_at(const LossSignature& signature, const Case& c,
                                   const properties::Place& place);

/// What the loss was told: "reduction token_mean", each option with its value, and an upstream
/// gradient other than 1. Without the defaults, too, nobody could say why a number is right.
std::vector<std::string> options_of(const LossSignature& signature, const Case& c);

/// "grpo, f32, sequences 2, tokens 4, token_mean, 2 micro-batches, clip_low 0.2".
std::string case_line(const LossSignature& signature, const Case& c);

/// Breaks at spaces so that no line is longer, where there are spaces.
std::vector<std::string> wrapped(const std::string& text, std::size_t width);

}  // namespace lossgate::report
