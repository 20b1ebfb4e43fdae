// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "corpora/dump.h"
#include "impl/external/greeting.h"
#include "impl/external/guilty_line.h"
#include "impl/external/host.h"
#include "impl/external/subject.h"

namespace lossgate::impl {

/// What a function gives for the tensors of a dump.
struct Rerun {
  std::optional<Tensor> loss;
  std::vector<std::pair<std::string, Tensor>> gradients;  ///< by field
  std::optional<GuiltyLine> guilty;
  std::string raised;  ///< what it raised instead, and where
};

/// A function that is called with the tensors of dumps as they were stored: under their own names,
/// in any mixture of formats, without a loss of the catalog.
class Rerunner {
 public:
  /// All dumps that are run have the fields and numbers of this one.
  Rerunner(Subject subject, const corpora::Dump& dump);

  /// Throws SubjectError where the function cannot be loaded, or takes what the dump has not.
  const Greeting& greeting();

  /// With its guilty line where asked for. Throws SubjectError, ProcessEnded, ProcessHung.
  Rerun run(const corpora::Dump& dump, bool explain);

 private:
  Subject subject_;
  LossSignature fields_;
  Host host_;
  std::optional<Greeting> greeting_;
  int greeted_ = 0;  ///< the process that gave the greeting
};

}  // namespace lossgate::impl
