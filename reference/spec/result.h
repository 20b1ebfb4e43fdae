// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/spec/case.h"

namespace lossgate {

/// "This input is not one that I compute": the argument at fault and, where it is one place, which.
struct Refusal {
  std::string argument;
  std::int64_t sequence = -1;
  std::int64_t token = -1;
  std::string message;
  /// What else the message names, as one of two that do not fit each other, or the output that is
  /// no result.
  std::vector<std::string> beside = {};
};

enum class OutputKind { loss, value, gradient };

/// Name, type and shape of one output of a loss. Gradients are named "gradient.<field>".
struct OutputInfo {
  std::string name;
  OutputKind kind = OutputKind::loss;
  std::string field;  ///< of a gradient
  Dtype dtype = Dtype::f32;
  std::vector<Axis> axes;
  Extents extents;
  std::optional<std::pair<double, double>> range = {};  ///< of every entry, by mathematics
};

/// The outputs that any result for this case has, in order: `loss` (unless the reduction is none),
/// the signature's own outputs, one gradient per differentiable field.
std::vector<OutputInfo> outputs_of(const LossSignature& signature, const Case& c);

struct Output {
  std::string name;
  Tensor tensor;
};

/// What an implementation answered: outputs, or a refusal.
struct LossResult {
  std::vector<Output> outputs;
  std::optional<Refusal> refusal;
  std::vector<std::string> mutated;  ///< inputs whose bits changed during the call
  /// What its library computes by, as the call left it, where that is not as it was before.
  std::vector<std::string> changed_settings;
  /// An own optional count of work done (rows scored, say), by name.
  std::vector<std::pair<std::string, std::int64_t>> counts;

  const Tensor* find(std::string_view output) const;
};

}  // namespace lossgate
