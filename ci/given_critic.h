// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ci/recognition.h"
#include "reference/reference.h"

namespace lossgate::ci {

/// A critic's loss, as it was recognised.
inline Recognition critic() {
  Recognition match{.loss = reference::find_loss("value_clip"),
                    .greeting = {},
                    .subject = {},
                    .likeness = {},
                    .remarks = {},
                    .refusal = ""};
  match.subject.name = "critic";
  match.subject.entry = "py:losses.py:critic";
  match.subject.reductions = {Reduction::token_mean};
  return match;
}

}  // namespace lossgate::ci
