// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ci/evidence/subjects.h"

namespace lossgate::ci::evidence {

/// What has been answered before.
struct Answered {
  LossResult case_before;  ///< the right answer to the case that was drawn before this one
  LossResult call_before;  ///< the right answer to the last call, of a transformed case perhaps
};

/// An answer that says nothing, or not all, of what was asked, in the shapes of the right one.
struct NullAnswer {
  std::string name;
  void (*put)(const Case& asked, const Answered& answered, LossResult& right);
  /// Whether any output of such a loss can become another by it.
  bool (*changes)(const LossSignature& signature);
};

const std::vector<NullAnswer>& all_null_answers();

/// A sound implementation that answers so.
class NullSubject {
 public:
  NullSubject(const Sound& sound, const NullAnswer& answer);

  const NullAnswer& answer() const { return answer_; }
  const impl::Implementation& implementation() const { return implementation_; }

  /// The right answer to the case that is over.
  void remember(LossResult result) { answered_->case_before = std::move(result); }

 private:
  NullAnswer answer_;
  std::shared_ptr<Answered> answered_ = std::make_shared<Answered>();
  impl::Implementation implementation_;
};

/// What a gate makes of that subject, case by case.
nlohmann::json count_null_answer(const Sound& sound, const NullAnswer& answer,
                                 const Effort& effort);

}  // namespace lossgate::ci::evidence
