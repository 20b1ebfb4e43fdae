// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ci/proposal.h"

namespace lossgate::ci {

/// A subject on a few benign cases: how well what it declares of its arithmetic fits the values
/// that it returns.
struct ArithmeticTrial {
  Dtype dtype = Dtype::f32;  ///< of the fields
  int cases = 0;
  double ratio = 0.0;  ///< its worst error, in units of the bound of what is declared
  /// What fits where the declared does not, or fits with much narrower bounds.
  std::optional<Proposal> proposal = {};
  std::optional<impl::DeclaredArithmetic> declaration = {};  ///< that it proposes
  std::string worth = {};   ///< "then the bounds are 30 times as narrow"
  std::string hiding = {};  ///< what would fit, were it not that it keeps no digit of what does not

  bool fits() const;
};

/// One trial for each format of fields that the subject is asked in; none where its loss has no
/// formula. A format narrower than the fields' is proposed only where small changes of the fields
/// leave most results as they are, bit for bit: a formula that is a little wrong would not. Throws
/// ImplementationThrew, SubjectError.
std::vector<ArithmeticTrial> try_arithmetic(const Brought& brought);

/// The trial for one of these formats.
ArithmeticTrial try_arithmetic(const Brought& brought, Dtype dtype);

/// What fails on a trial's hostile and benign cases, of the first format of fields in which any
/// does, where the subject declares this instead, and not where it declares what it does: 16 benign
/// cases fit many a declaration. Throws ImplementationThrew, SubjectError.
std::vector<std::string> failing_under(const Brought& brought,
                                       const impl::DeclaredArithmetic& arithmetic);

/// Whether a declaration holds these cases of one format, too, without hiding what the subject's
/// own says is wrong of them. Throws ImplementationThrew, SubjectError.
bool explains(const Brought& brought, Dtype dtype, std::span<const Case> failing,
              const impl::DeclaredArithmetic& arithmetic);

/// What fits these cases of one format, which what is declared does not: an order of sums, where
/// none is declared, as benign cases hardly tell one from another; else a slope of exp, whose
/// arguments are small there, under which a trial's cases are right, too. Throws
/// ImplementationThrew, SubjectError.
std::optional<Proposal> try_concession(const Brought& brought, Dtype dtype,
                                       std::span<const Case> failing);

}  // namespace lossgate::ci
