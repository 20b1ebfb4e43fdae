// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ci/variant.h"
#include "impl/external/session.h"
#include "properties/property.h"
#include "reference/reference.h"

namespace lossgate::ci {

/// A call that ends the process of its implementation, or throws (does_not_crash), and what is the
/// same crash: one that is told of alike, by its signal, its exit status or as an exception. It is
/// met again where the process is not this one: a subject that is brought, in a new process each
/// time, or one that throws. What hangs is no crash: each try would take as long as a call may.
class Crash {
 public:
  /// What was met on the case by a guarded subject (ci/variant.h): `at_once` where it does not
  /// answer the whole case itself, else on one that a property of those that were asked made of it.
  Crash(const reference::Loss& loss, const impl::Implementation& subject,
        std::vector<const properties::Property*> asked, const Case& c,
        const ImplementationThrew& met, bool at_once);

  /// Asks the subject; nothing where all calls return, one hangs, or none can be made any more.
  static std::optional<Crash> on(const reference::Loss& loss, const impl::Implementation& subject,
                                 std::vector<const properties::Property*> asked, const Case& c);

  const std::string& how() const { return how_; }

  /// How the subject ends on the case, where it is the same crash, on a batch in which something
  /// counts, or is refused, as on the first. Nothing on what no caller hands over.
  std::optional<std::string> seen_on(const Case& c) const;

 private:
  /// What has to stay as it is.
  struct Kind {
    std::string cause;
    bool refused = false, anything_counts = true;
    bool operator==(const Kind&) const = default;
  };
  static Kind kind_of(const properties::CaseStudy& study, const ImplementationThrew& met);

  const reference::Loss* loss_;
  const impl::Implementation* subject_;
  std::vector<const properties::Property*> asked_;
  std::string how_;
  Kind kind_;
  bool at_once_, keeps_to_contract_;
};

/// A case on which the same crash is met, and how it was met there.
struct SimpleCrash {
  Case c;
  std::string how;
};

/// The simplest case that a few tries reach, with nobody's story; nothing where there is none that
/// is simpler, or it is not met there twice. It takes seconds: an interpreter is started anew after
/// each crash. What the subject ends of meanwhile does not wear its session out, if it has one.
std::optional<SimpleCrash> simplest(const Crash& crash, const LossSignature& signature,
                                    const Case& c, impl::Session* session);

}  // namespace lossgate::ci
