// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/losses/grpo.h"

namespace lossgate::reference {

/// All losses, in the order in which they are listed. A loss is a type with
///   static LossSignature signature();
///   template <class S> static void evaluate(const Inputs<S>&, const Outputs<S>&);
template <class... Losses>
struct LossList {
  /// Calls f.template operator()<Loss>() for every loss.
  template <class F>
  static void for_each(F&& f) {
    (f.template operator()<Losses>(), ...);
  }
};

using Catalog = LossList<Grpo>;

}  // namespace lossgate::reference
