// SPDX-License-Identifier: Apache-2.0
#include "ci/tame.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/spec/numbers.h"

namespace lossgate::ci {

void as_it_is(const LossSignature&, Case&) {}

void without_infinities(const LossSignature& signature, Case& c) {
  constexpr double kImpossible = -1e4;
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    for (std::int64_t i = 0; is_float(tensor.dtype) && i < tensor.size(); ++i) {
      if (tensor.at(i) == -HUGE_VAL) tensor.set(i, kImpossible);
    }
  }
}

void with_long_labels(const LossSignature& signature, Case& c) {
  for (const Field& field : signature.fields) {
    Tensor& tensor = c.batch.at(field.name);
    if (tensor.dtype != Dtype::i32 || std::ranges::count(field.dtypes, Dtype::i64) == 0) continue;
    tensor = as_dtype(std::move(tensor), Dtype::i64);
  }
}

}  // namespace lossgate::ci
