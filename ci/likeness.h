// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/reference.h"

namespace lossgate::ci {

/// Of every entry of every output, in the order of outputs_of.
using Values = std::vector<std::vector<double>>;
using OptionValues = std::vector<std::pair<std::string, OptionValue>>;

/// A case as it was put to a function, and its answer, or why there is none.
struct Probe {
  Case c;
  std::optional<Values> answer;
  std::string refusal;
};

/// Those that a function may be told; an operation has the one that reduces nothing.
std::vector<Reduction> reductions_of(const LossSignature& loss);

/// What a function may be: one choice of everything that it was not told.
struct Candidate {
  Reduction reduction = Reduction::none;
  OptionValues options;
};

/// An answer beside what the formula gives.
struct Closeness {
  bool equal = false;    ///< loss and all gradients, as far as the format of the fields can tell
  bool rounded = false;  ///< the same, as far as f32 can
  double factor = std::numeric_limits<double>::quiet_NaN();  ///< answer = factor x formula, or NaN
  double distance = 1.0;                                     ///< 0: the same, 1: nothing alike
};

/// A loss's formula under one narrowed signature, and what an answer in a format may differ by.
class Formula {
 public:
  Formula(const reference::Loss& loss, LossSignature narrowed, Dtype dtype);

  const LossSignature& signature() const { return loss_.signature; }
  Dtype dtype() const { return dtype_; }

  /// Whether the case is one of which there is no result, as of a message that cannot be read.
  bool refuses(const Case& c) const { return reference::expected_refusal(loss_, c).has_value(); }

  /// The formula on a case that asks for the candidate.
  Values values(const Case& c, const Candidate& candidate) const;

  Closeness operator()(const Probe& probe, const Candidate& candidate) const;

  /// Whether two results are different beyond what any format of fields would blur.
  static bool differ(const Values& a, const Values& b);

 private:
  struct Bounded {
    Values values, margins;
  };
  Bounded evaluate(const Case& c, const Candidate& candidate) const;

  reference::Loss loss_;
  Dtype dtype_;
  Arithmetic arithmetic_;
};

}  // namespace lossgate::ci
