// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

namespace lossgate::reference {

/// The type of the reference's values: 64 bits of significand on x86-64, 113 on Linux aarch64.
using Real = long double;

inline Real sigmoid(Real a) { return 1.0L / (1.0L + std::exp(-a)); }

/// Whether Real can judge results in double. Where it cannot, f64 subjects are skipped.
inline constexpr bool kRealIsWiderThanDouble =
    std::numeric_limits<Real>::digits > std::numeric_limits<double>::digits;

/// Half the distance from 1 to the next Real.
inline constexpr double kRealRoundoff = std::numeric_limits<Real>::epsilon() / 2;

/// The one threshold of every comparison, as in LAPACK's test ratios (rule B3).
inline constexpr double kThreshold = 2.0;

/// How much less double must be charged than the subject for the filter to be asked, and how far it
/// is off then, relative to a bound (rule B9): a thousand operations, one after the other, are far
/// from it.
inline constexpr double kFilterCharge = 0x1p-26;
inline constexpr double kFilterSlack = 0x1p-16;

}  // namespace lossgate::reference
