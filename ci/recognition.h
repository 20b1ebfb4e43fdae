// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ci/interview.h"
#include "ci/settling.h"

namespace lossgate::ci {

/// A function beside one loss: what it is, or what it is nearest to.
struct Recognition {
  const reference::Loss* loss;
  impl::Greeting greeting;
  /// As it is to be asked: its options are those that it is not free to be told. Its reductions are
  /// those under which it is the loss; none where it is not.
  impl::Subject subject;
  Likeness likeness;                 ///< of the nearest candidate
  std::vector<std::string> remarks;  ///< what was found out on the way, or what differs
  std::string refusal;               ///< why it did not answer, where it did not
  /// What it answered in the one way that its parameters say, where that is all it was asked, is
  /// not the loss, and was never refused.
  std::shared_ptr<const Interview> plainly = {};
  /// The options by which it is wrong, and where it is right: a gate asks them, and sees it.
  OptionValues let_go = {};
  /// What could stay in place of an option that does.
  std::vector<Choice> choices = {};
  /// As good on these cases, the plainest first: each with what it has otherwise.
  std::vector<OptionValues> equals = {};
  /// Where it is wrong, though it is the loss otherwise.
  std::vector<std::string> faults = {};

  bool whole() const { return !subject.reductions.empty(); }
};

/// Asks the function as the loss: as its parameters say, and where that is not the loss, with other
/// values of what it is told, one advantage a sequence, other kinds of masks and labels, labels
/// that it shifts itself, axes of one extent. What it cannot be told is looked for among likely
/// values, then by how near the answers come. `thorough` false asks in the one way that its
/// parameters say.
Recognition recognise(Function& function, const reference::Loss& loss, const impl::Subject& subject,
                      bool thorough);

/// Goes on thoroughly from where it was not: what was answered then is not asked again.
Recognition recognise_further(Function& function, const Recognition& plain);

}  // namespace lossgate::ci
