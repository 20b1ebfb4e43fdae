// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string_view>

#include "impl/implementation.h"
#include "properties/property.h"

/// For the tests of this folder: a plain implementation of GRPO, ways to break it, and cases.
namespace lossgate::properties {

/// One thing that the fake does wrong.
enum class Flaw {
  none,
  mean_of_means,        ///< every part divides by its own count, and the parts are averaged
  padding_counted,      ///< token_mean divides by all positions
  sequence_counted,     ///< sequence_mean divides by all sequences, empty ones included
  mask_multiplied,      ///< masked terms are computed and multiplied by 0
  clamped_after_exp,    ///< the log-ratio's bound is applied to the weight: its slope is 0 * inf
  masked_data_read,     ///< masked data reaches the loss, a little
  masked_gradient,      ///< a gradient at masked positions
  nan_replaced,         ///< NaN and infinities in outputs become 0
  nan_replaced_inputs,  ///< NaN and infinities in inputs become 0
  empty_divided,        ///< 0 / 0 where nothing is valid
  zero_multiplied,      ///< a zero advantage is multiplied by an infinite weight
  slope_biased,         ///< gradients times 1 + amount
  one_slope_biased,     ///< the same, the first valid token only
  value_biased,         ///< per-token values times 1 + amount
  kl_biased,            ///< KL off by `amount`, whatever the input
  signal_dead,          ///< the gradient is 0 everywhere
  upstream_ignored,     ///< the gradient of the loss, whatever comes from above
  input_overwritten,    ///< says that it changed an input
  setting_changed,      ///< says that it left a setting changed
  order_varies,         ///< every second call is off by a rounding
  invalid_accepted,     ///< no checks
  argument_misnamed,    ///< refuses, but names another argument
  legal_refused,        ///< refuses everything
  output_missing,       ///< no per-token values
  dtype_changed,        ///< the gradient comes in f64
  row_reads_neighbour,  ///< the advantage of the row before
  grad_mode_read,       ///< the loss is 0 where no gradient is asked for
};

impl::Implementation fake_grpo(Flaw flaw = Flaw::none, double amount = 0.0);

const reference::Loss& grpo();

/// Benign values, every position valid, the standard options.
Case grpo_case(std::int64_t sequences, std::int64_t tokens, Dtype dtype = Dtype::f32);

/// Hostile values, shapes, options and dtypes; sentinels of every kind where masked.
Case random_grpo_case(std::mt19937_64& random);

void put(Case& c, std::string_view field, std::int64_t sequence, std::int64_t token, double value);
double get(const Case& c, std::string_view field, std::int64_t sequence, std::int64_t token);
void mask_out(Case& c, std::int64_t sequence, std::int64_t token);
/// old_log_prob such that the log-ratio there is this, log_prob being 0.
void put_log_ratio(Case& c, std::int64_t sequence, std::int64_t token, double log_ratio);

/// One property, one implementation, one case.
Outcome check(std::string_view property, const impl::Implementation& implementation, const Case& c);

}  // namespace lossgate::properties
