// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "impl/external/subject.h"
#include "reference/spec/signature.h"

namespace lossgate::ci {

/// A function that many losses could not be asked of, since its parameters have other names: what
/// is said of one loss is said of all, and who it was meant for is the one that knows most of them.
class Unmatched {
 public:
  void add(const LossSignature& loss, const impl::ParametersUnmatched& error);

  /// How many losses, which is nearest, and how to say the rest; the error itself where it was one.
  std::string text() const;

 private:
  struct Nearest {
    const LossSignature* loss;
    impl::ParametersUnmatched error;
  };
  std::optional<Nearest> nearest_;  ///< the first of those that know as many
  int losses_ = 0;
};

}  // namespace lossgate::ci
