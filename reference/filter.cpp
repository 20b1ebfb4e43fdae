// SPDX-License-Identifier: Apache-2.0
#include "reference/filter.h"

#include <algorithm>

#include "reference/reference.h"

namespace lossgate::reference {

// One for each instruction set (reference/lanes).
Approximator baseline_approximator(std::size_t place);
Approximator avx2_approximator(std::size_t place);
Approximator avx512_approximator(std::size_t place);

namespace {

/// How the lanes compute.
Arithmetic double_arithmetic() {
  Arithmetic a = real_arithmetic();
  a.roundoff = unit_roundoff(Dtype::f64);
  a.sum.roundoff = a.matmul.roundoff = 2.0 * a.roundoff;
  a.math.exp = a.math.expm1 = 16.0;
  a.math.sigmoid = 20.0;
  return a;
}

/// Of the loss at this place of the catalog.
std::vector<Approximator> build(std::size_t place) {
  std::vector<Approximator> all;
  if (!baseline_approximator(place)) return all;
#if defined(__x86_64__) && !defined(LOSSGATE_BASELINE_LANES)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    all.push_back(avx512_approximator(place));
  }
  if (__builtin_cpu_supports("avx2")) all.push_back(avx2_approximator(place));
#endif
  all.push_back(baseline_approximator(place));
  return all;
}

}  // namespace

const std::vector<Approximator>& approximators_of(const Loss& loss) {
  static const auto all = [] {
    std::vector<std::vector<Approximator>> built;
    for (std::size_t place = 0; place < catalog().size(); ++place) built.push_back(build(place));
    return built;
  }();
  static const std::vector<Approximator> none;
  // A loss of the same name may have another formula.
  const auto at = std::ranges::find(catalog(), loss.evaluate, &Loss::evaluate);
  if (loss.advice || at == catalog().end()) return none;
  return all[static_cast<std::size_t>(at - catalog().begin())];
}

bool is_coarse(const Arithmetic& arithmetic) {
  static const Arithmetic own = double_arithmetic();
  return uncertainty(own, arithmetic) <= kFilterCharge;
}

}  // namespace lossgate::reference
