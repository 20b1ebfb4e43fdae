// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "impl/faulty/tape.h"
#include "reference/spec/result.h"

namespace lossgate::impl {

/// What a program on a tape returns that has one term per position: the loss, the terms, and the
/// gradient with respect to the leaf of each position, in the format of the tape's numbers.
template <class Format>
LossResult result_by_position(const Tape<Format>& tape, Var<Format> loss,
                              const std::vector<Var<Format>>& terms,
                              const std::vector<Var<Format>>& leaves, const Extents& positions,
                              std::string gradient_name) {
  const Dtype wide = sizeof(typename Format::Value) == 8 ? Dtype::f64 : Dtype::f32;
  Tensor total = Tensor::zeros(wide, {}), per_token = Tensor::zeros(wide, positions),
         gradient = Tensor::zeros(wide, positions);
  total.set(0, static_cast<double>(loss.value()));
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    per_token.set(at, static_cast<double>(terms[i].value()));
    gradient.set(at, static_cast<double>(tape.gradient(leaves[i])));
  }
  LossResult result;
  result.outputs.push_back({"loss", std::move(total)});
  result.outputs.push_back({"per_token", std::move(per_token)});
  result.outputs.push_back({std::move(gradient_name), std::move(gradient)});
  return result;
}

}  // namespace lossgate::impl
