// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "impl/external/declared_arithmetic.h"

/// What a function may declare of how it computes, where what it declares does not fit.
namespace lossgate::ci {

std::vector<Dtype> narrower_formats(Dtype than);  ///< from many digits to few

/// Declarations to try of fields that are stored so, from narrow bounds to wide ones for each
/// format. What is said of sums, products, exp and subnormals is kept but where it is conceded; the
/// order of sums is in any case, if what is declared fits: few values do not tell it from another.
std::vector<impl::DeclaredArithmetic> candidates(const impl::DeclaredArithmetic& declared,
                                                 bool fits, Dtype stored);

/// Orders of sums with wider bounds than an undeclared one, from narrow to wide.
std::vector<impl::DeclaredSum> other_orders();

/// Whether it says that something is rounded to fewer digits than the fields have.
bool narrows(const impl::DeclaredArithmetic& declared, Dtype stored);

}  // namespace lossgate::ci
