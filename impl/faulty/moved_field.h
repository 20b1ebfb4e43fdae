// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "impl/faulty/other_field.h"

namespace lossgate::impl {

/// What the step answers where one field [sequences, tokens] is a token beside its place: what
/// belongs to a token stands one token on (+1) or back (-1), and `filler` at the end that is left.
inline LossResult with_moved_field(const Step& step, const MicroBatch& batch,
                                   const std::string& field, std::int64_t by, double filler) {
  const Tensor& given = batch.part.batch.at(field);
  Tensor tensor = given;
  const std::int64_t tokens = given.extents.at(1);
  for (std::int64_t i = 0; i < given.size(); ++i) {
    const std::int64_t from = i % tokens - by;
    tensor.set(i, from >= 0 && from < tokens ? given.at(i - by) : filler);
  }
  return with_other_field(step, batch, field, std::move(tensor));
}

}  // namespace lossgate::impl
