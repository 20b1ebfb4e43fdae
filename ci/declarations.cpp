// SPDX-License-Identifier: Apache-2.0
#include "ci/declarations.h"

#include <algorithm>

namespace lossgate::ci {

using impl::DeclaredArithmetic;
using impl::DeclaredSum;

std::vector<Dtype> narrower_formats(Dtype than) {
  std::vector<Dtype> formats;
  for (const Dtype format : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    if (unit_roundoff(format) > unit_roundoff(than)) formats.push_back(format);
  }
  return formats;
}

namespace {

constexpr double kWidestTile = 4096.0;

/// What a function may declare that computes in one format, from narrow bounds to wide ones.
void add_concessions(const DeclaredArithmetic& plain, Dtype compute, Dtype stored,
                     std::vector<DeclaredArithmetic>& all) {
  const auto with = [&](auto change) {
    all.push_back(plain);
    change(all.back());
  };
  all.push_back(plain);
  with([](auto& a) { a.sum = DeclaredSum{SumOrder::sequential, 1.0, {}}; });
  with([](auto& a) { a.exp_slope = 1.0; });
  // Beside fields of 16 bits hardly anybody stores other 16 bits, which some numbers fit by chance.
  std::vector<Dtype> formats = narrower_formats(compute);
  const bool narrow = unit_roundoff(stored) > unit_roundoff(Dtype::f32);
  if (narrow) std::erase_if(formats, [&](Dtype format) { return format != stored; });
  for (const Dtype format : formats) {
    const impl::Format in = format == stored ? impl::Format() : format;
    for (const auto& [word, stage] : impl::stage_words()) {
      with([&](auto& a) { a.stages = {{stage, in}}; });
    }
    // Terms that are handed back in it, and their gradient, too.
    for (const Stage stage : {Stage::per_token, Stage::loss}) {
      with([&](auto& a) { a.stages = {{stage, in}, {Stage::gradient, in}}; });
    }
    with([&](auto& a) { a.sum = DeclaredSum{SumOrder::pairwise, 1.0, format}; });
  }
}

}  // namespace

std::vector<DeclaredArithmetic> candidates(const DeclaredArithmetic& declared, bool fits,
                                           Dtype stored) {
  std::vector<Dtype> formats = narrower_formats(stored);
  formats.insert(formats.begin(), stored);
  if (unit_roundoff(stored) > unit_roundoff(Dtype::f32)) formats = {Dtype::f32, stored};
  std::vector<DeclaredArithmetic> all;
  for (const Dtype compute : formats) {
    DeclaredArithmetic plain = declared;
    plain.compute = compute == stored ? impl::Format() : compute;
    plain.stages.clear();
    add_concessions(plain, compute, stored, all);
    if (plain.form.empty()) continue;
    plain.form.clear();
    all.push_back(plain);
  }
  if (fits && declared.sum) {
    std::erase_if(all, [&](const auto& candidate) { return candidate.sum != declared.sum; });
  }
  return all;
}

std::vector<DeclaredSum> other_orders() {
  std::vector<DeclaredSum> orders = {{SumOrder::sequential, 1.0, {}}};
  for (double tile = kWidestTile; tile >= 1.0; tile /= 4.0) {
    orders.push_back({SumOrder::online, tile, {}});
  }
  return orders;
}

bool narrows(const DeclaredArithmetic& declared, Dtype stored) {
  const auto fewer = [&](const impl::Format& format) {
    return unit_roundoff(format.value_or(stored)) > unit_roundoff(stored);
  };
  return fewer(declared.compute) || (declared.sum && fewer(declared.sum->in)) ||
         (declared.matmul && fewer(declared.matmul->in)) ||
         std::ranges::any_of(declared.stages,
                             [&](const auto& stage) { return fewer(stage.second); });
}

}  // namespace lossgate::ci
