// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "corpora/safetensors.h"
#include "impl/external/greeting.h"
#include "impl/external/host.h"
#include "impl/external/subject.h"
#include "impl/trainer.h"

namespace lossgate::impl {

/// The conversation with one subject (see PROTOCOL.md), in a process that may be that of others
/// too.
class Session {
 public:
  Session(Subject subject, LossSignature loss, std::shared_ptr<Host> host);
  /// In a process of its own.
  Session(Subject subject, LossSignature loss);

  /// Starts the process and does not wait for it; what goes wrong, `greeting` says.
  void begin();

  /// Throws SubjectError where the subject cannot be loaded.
  const Greeting& greeting();

  const std::shared_ptr<Host>& host() const { return host_; }

  /// Ends the process, and gives back its memory until a subject is asked again.
  void rest() { host_->end(); }

  /// How often its process ended, and how often for a hang: it may do so only so often.
  struct Wear {
    int ends = 0, hangs = 0;
  };
  Wear wear() const { return wear_; }
  /// What it was asked since, to see it end again, does not count.
  void forgive(Wear before) { wear_ = before; }

  /// Where in what the function returned last its loss was, as Python goes there: "", "[0]".
  const std::string& loss_in() const { return loss_in_; }

  /// The same function as another loss, or with other arguments, in the same process.
  void become(const Subject& subject, const LossSignature& loss);

  /// The outputs of one micro-batch, its loss multiplied by `share` before the backward. What the
  /// function raises is a Refusal. Throws ProcessEnded, ProcessHung, SubjectError.
  LossResult step(MicroBatch& batch, double share) { return ask(batch, share, nullptr); }

  /// Sends what `step` will be asked soon; false where it was not sent, nor will be what comes
  /// next. Whatever goes wrong is met again by whoever asks.
  bool begin_foreseeing();
  bool foresee(MicroBatch& batch, double share);

  /// The same, and where its first non-finite number begins, if it has one.
  LossResult step(MicroBatch& batch, double share, std::optional<Origin>& origin) {
    return ask(batch, share, &origin);
  }

 private:
  void greet();
  void end();
  void stop_foreseeing();
  LossResult ask(MicroBatch& batch, double share, std::optional<Origin>* origin);
  corpora::TensorFile answer_to(const std::vector<std::byte>& frame);

  Subject subject_;
  LossSignature loss_;
  std::shared_ptr<Host> host_;
  std::optional<Greeting> greeting_;
  std::string loss_in_;
  int greeted_ = 0;  ///< the process of the host that gave the greeting
  Wear wear_;
  bool foresees_ = true;  ///< until a question that was sent ahead took others with it
};

/// The subject as an implementation of the narrowed loss. A crash is thrown as ProcessEnded or
/// ProcessHung; what goes wrong other than in the function under test is a SubjectError.
Implementation brought_implementation(const Subject& subject, const LossSignature& narrowed,
                                      std::shared_ptr<Session> session);

}  // namespace lossgate::impl
