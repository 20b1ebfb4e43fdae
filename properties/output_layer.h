// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/spec/case.h"

/// Output layers of losses that make their logits themselves: of one position its weights may have
/// any logits come out.
namespace lossgate::properties {

/// Whose logits are the products of a state and the weights, and a bias besides.
struct OutputLayer {
  bool leaf = false;                ///< of the model that is trained
  std::string state, weight, bias;  ///< fields; none where empty
};

/// Those that a loss has; none where logits are a field.
std::vector<OutputLayer> output_layers(const LossSignature& signature);

/// Of a case of one position the logit of a class, before a temperature divides it.
double logit_of(const Case& c, const OutputLayer& layer, std::int64_t label);

/// Moves a weight of the class, so that this is its logit.
void set_logit(Case& c, const OutputLayer& layer, std::int64_t label, double logit);

}  // namespace lossgate::properties
