// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// Of the forms that signatures name, those that more than one implementation declares.
namespace lossgate::impl {

inline constexpr std::string_view kSoftmaxForm = "(x - max) - log S";
inline constexpr std::string_view kDivergenceForm = "(x - max) - log S with p = exp(log p)";
inline constexpr std::string_view kTargetDifferenceForm = "logsumexp(x) - sum t x";
inline constexpr std::string_view kClosedK3Form = "expm1(x) - x, closed";
inline constexpr std::string_view kLinearGrpoForm = "expm1(x) - x, closed with (x - max) - log S";

}  // namespace lossgate::impl
