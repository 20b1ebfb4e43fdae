// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "impl/external/greeting.h"
#include "impl/external/process.h"
#include "impl/external/subject.h"
#include "impl/trainer.h"

namespace lossgate::impl {

/// The conversation with one subject (see PROTOCOL.md). Its process is started when it is first
/// needed, and again after it has ended.
class Session {
 public:
  Session(Subject subject, LossSignature loss);

  /// Starts the process and does not wait for it; what goes wrong, `greeting` says.
  void begin();

  /// Throws SubjectError where the subject cannot be loaded.
  const Greeting& greeting();

  /// Ends the process, and gives back its memory until the subject is asked again.
  void rest() { process_.reset(); }

  /// The same function as another loss, or with other arguments, in the same process.
  void become(const Subject& subject, const LossSignature& loss);

  /// The outputs of one micro-batch, its loss multiplied by `share` before the backward. What the
  /// function raises is a Refusal. Throws ProcessEnded, ProcessHung, SubjectError.
  LossResult step(MicroBatch& batch, double share) { return ask(batch, share, nullptr); }

  /// The same, and where its first non-finite number begins, if it has one.
  LossResult step(MicroBatch& batch, double share, std::optional<Origin>& origin) {
    return ask(batch, share, &origin);
  }

 private:
  void start();
  void greet();
  LossResult ask(MicroBatch& batch, double share, std::optional<Origin>* origin);

  Subject subject_;
  LossSignature loss_;
  std::unique_ptr<Process> process_;
  std::optional<Greeting> greeting_;
  int starts_ = 0, hangs_ = 0;
};

/// The subject as an implementation of the narrowed loss. A crash is thrown as ProcessEnded or
/// ProcessHung; what goes wrong other than in the function under test is a SubjectError.
Implementation brought_implementation(const Subject& subject, const LossSignature& narrowed,
                                      std::shared_ptr<Session> session);

}  // namespace lossgate::impl
