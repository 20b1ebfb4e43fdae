// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "impl/trainer.h"

namespace lossgate::impl {

/// What the step answers where one field is another tensor. Which positions count follows the
/// tensor; the step's counts are those of before.
inline LossResult with_other_field(const Step& step, const MicroBatch& batch,
                                   const std::string& field, Tensor tensor) {
  Case part = batch.part;
  part.batch.at(field) = std::move(tensor);
  const Positions positions = find_positions(batch.signature, part);
  MicroBatch other = batch.with(part, positions);
  return step(other);
}

}  // namespace lossgate::impl
