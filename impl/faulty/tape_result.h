// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "impl/faulty/tape.h"
#include "reference/spec/result.h"

namespace lossgate::impl {

/// What a program on a tape returns that has one term per position: the loss, the terms, and the
/// gradient with respect to the leaves of each position, in the format of the tape's numbers. The
/// leaves are those of a field [sequences, tokens, ...]; none where the field was not read.
template <class Format>
LossResult result_by_row(const Tape<Format>& tape, Var<Format> loss,
                         const std::vector<Var<Format>>& terms,
                         const std::vector<std::vector<Var<Format>>>& rows, const Extents& field,
                         std::string gradient_name) {
  const Dtype wide = sizeof(typename Format::Value) == 8 ? Dtype::f64 : Dtype::f32;
  Tensor total = Tensor::zeros(wide, {}), per_token = Tensor::zeros(wide, {field[0], field[1]}),
         gradient = Tensor::zeros(wide, field);
  total.set(0, static_cast<double>(loss.value()));
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i), width = gradient.size() / per_token.size();
    per_token.set(at, static_cast<double>(terms[i].value()));
    for (std::size_t v = 0; v < rows[i].size(); ++v) {
      gradient.set(at * width + static_cast<std::int64_t>(v),
                   static_cast<double>(tape.gradient(rows[i][v])));
    }
  }
  LossResult result;
  result.outputs.push_back({"loss", std::move(total)});
  result.outputs.push_back({"per_token", std::move(per_token)});
  result.outputs.push_back({std::move(gradient_name), std::move(gradient)});
  return result;
}

/// The same with one leaf per position.
template <class Format>
LossResult result_by_position(const Tape<Format>& tape, Var<Format> loss,
                              const std::vector<Var<Format>>& terms,
                              const std::vector<Var<Format>>& leaves, const Extents& positions,
                              std::string gradient_name) {
  std::vector<std::vector<Var<Format>>> rows;
  for (const Var<Format>& leaf : leaves) rows.push_back({leaf});
  return result_by_row(tape, loss, terms, rows, positions, std::move(gradient_name));
}

/// What a program returns that has one term per sequence, under a name: the loss, the terms, and
/// the gradients by fields of which each sequence has a number.
template <class Format>
LossResult result_by_sequence(
    const Tape<Format>& tape, Var<Format> loss, std::string name,
    const std::vector<Var<Format>>& terms,
    const std::vector<std::pair<std::string, std::vector<Var<Format>>>>& leaves) {
  const Dtype wide = sizeof(typename Format::Value) == 8 ? Dtype::f64 : Dtype::f32;
  const auto of_each = [&](const std::vector<Var<Format>>& all, const auto& number) {
    Tensor tensor = Tensor::zeros(wide, {static_cast<std::int64_t>(all.size())});
    for (std::size_t s = 0; s < all.size(); ++s) {
      tensor.set(static_cast<std::int64_t>(s), static_cast<double>(number(all[s])));
    }
    return tensor;
  };
  Tensor total = Tensor::zeros(wide, {});
  total.set(0, static_cast<double>(loss.value()));
  LossResult result;
  result.outputs.push_back({"loss", std::move(total)});
  result.outputs.push_back(
      {std::move(name), of_each(terms, [](const Var<Format>& term) { return term.value(); })});
  for (const auto& [field, own] : leaves) {
    result.outputs.push_back({"gradient." + field, of_each(own, [&](const Var<Format>& leaf) {
                                return tape.gradient(leaf);
                              })});
  }
  return result;
}

}  // namespace lossgate::impl
