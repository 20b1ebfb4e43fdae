// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ci/brought.h"
#include "properties/case_study.h"

namespace lossgate::ci {

/// What a declaration makes of the values seen.
struct Fit {
  double ratio = 0.0;  ///< worst error, in units of the bound
  /// Mean of log2(bound) over all entries that are neither exact nor 0. A bound beyond the value is
  /// worth as little as one as large.
  double log_bound = 0.0;
  double unbounded = 0.0;  ///< the share of these whose bound is none
  bool hides = false;      ///< of a case it keeps no digit of what is disputed

  bool holds() const { return ratio <= reference::kThreshold && !hides; }
};

/// What a subject answered to cases of one format, held against declarations of its arithmetic.
class Observations {
 public:
  /// Leaves out what the subject does not compute. Throws ImplementationThrew, SubjectError.
  Observations(const Brought& brought, Dtype stored, std::vector<Case> cases);

  int size() const { return static_cast<int>(seen_.size()); }

  Fit fit(const impl::DeclaredArithmetic& declared);

  /// Holds further declarations against what this one says is wrong: one hides it under which a
  /// case keeps no digit of that.
  void dispute(const impl::DeclaredArithmetic& declared);

  /// Whether most results stay as they are when the fields change by less than a narrower format
  /// sees.
  bool insensitive() const;

  /// The narrowest format that the function rounds its fields to.
  std::optional<Dtype> rounds_fields_to() const;

  /// Whether it rounds this field to the format of the others.
  bool rounds(const std::string& field) const;

 private:
  struct Seen {
    std::unique_ptr<properties::CaseStudy> study;
    LossResult actual;
  };

  Arithmetic arithmetic_of(const impl::DeclaredArithmetic& declared) const;
  template <class Visit>
  void each_entry(const Arithmetic& arithmetic, Visit&& visit);
  bool hides(const Arithmetic& arithmetic);
  template <class Wanted, class Change>
  double same_share(Wanted&& wanted, Change&& change) const;
  template <class Wanted, class Change>
  std::optional<Case> with_fields(Case c, Wanted&& wanted, Change&& change) const;

  const Brought& brought_;
  Dtype stored_;
  impl::Implementation subject_;
  std::vector<Seen> seen_;
  std::vector<bool> disputed_;  ///< by entry
};

}  // namespace lossgate::ci
