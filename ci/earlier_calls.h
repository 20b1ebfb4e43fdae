// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ci/selection.h"
#include "properties/diagnosis.h"

namespace lossgate::ci {

/// The cause (properties/causes.h) of what takes calls before it.
inline constexpr const char* kStateBetweenCalls = "state between calls";

/// A brought subject in a process of its own, in which nothing was asked before; it ends with the
/// last copy of what is returned. Nothing where no process can be started: of implementations of
/// the catalog, and of functions that are served by their caller. Guarded (ci/variant.h), so that
/// `before` hears of each call.
std::optional<impl::Implementation> in_new_process(const Selection& selection,
                                                   const impl::Implementation& subject,
                                                   std::function<void()> before = {});

/// Whether what is said of a violation may come of earlier calls, which takes seconds to find out:
/// it is a count, an option or where a tensor lies, in whose place a number kept from another case
/// looks alike, or one answer is not the formula's, and no experiment is sure why, or is no number,
/// and nothing says why.
bool may_need_earlier_calls(const properties::Property& property,
                            const properties::Diagnosis& diagnosis);

/// What takes calls before it.
struct EarlierCalls {
  properties::Diagnosis diagnosis;
  bool holds_alone = false;  ///< a replay of the case, alone, is green
};

/// Rule G3: what a violation on the case is called where it takes calls before it. `start` gives
/// the subject where nothing was asked before. There the case holds, or does so with such a start
/// for each of a few calls, while it fails again of `subject`. Where it holds alone it is asked
/// over and over, to say how often it takes.
std::optional<EarlierCalls> needs_earlier_calls(const reference::Loss& loss,
                                                const impl::Implementation& subject,
                                                const std::function<impl::Implementation()>& start,
                                                const properties::Property& property, const Case& c,
                                                const std::string& cause);

}  // namespace lossgate::ci
