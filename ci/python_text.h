// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ci/brought.h"

/// Numbers, tensors and calls as Python writes them.
namespace lossgate::ci {

/// "torch.int64".
std::string torch_name(Dtype dtype);

/// "0.25", "float(\"inf\")".
std::string python_number(double value);

/// In quotes.
std::string python_string(const std::string& text);

/// "torch.tensor([[1.0, 0.0]])": the same bits in the field's dtype, as the worker would hand them
/// over.
std::string python_tensor(const Field& field, const Tensor& tensor);

/// "ppo_loss(log_probs=log_prob, clip_low=0.2)": the arguments of the greeting. With `rows`, each
/// field that has sequences is indexed by a variable of that name. Throws InputError for a source
/// that means nothing outside of a run.
std::string python_call(const Brought& brought, const Case& c, bool rows);

}  // namespace lossgate::ci
