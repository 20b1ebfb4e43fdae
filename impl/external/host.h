// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "impl/external/greeting.h"
#include "impl/external/lookahead.h"
#include "impl/external/process.h"
#include "impl/external/subject.h"

namespace lossgate::impl {

/// A process in which subjects are asked. It is started when it is first needed, and again after it
/// has ended.
class Host {
 public:
  /// Of the subject, and of every other that it `serves`.
  explicit Host(const Subject& subject);

  /// Whether the process is the one that this subject asks for. Interpreters take seconds to import
  /// torch, so subjects share one; libraries are loaded in no time and get one each.
  bool serves(const Subject& subject) const;

  /// Starts the process, if it does not run, without waiting for it. Throws ProcessEnded,
  /// ProcessHung, SubjectError.
  void start();

  /// Ends the process, and gives back its memory.
  void end() {
    ahead_.clear();
    process_.reset();
  }

  /// Counts the processes: what one was told, the next one does not know. 0: none runs.
  int running() const { return process_ ? starts_ : 0; }

  /// Sends one frame to the running process and waits for its answer, so many seconds of its own
  /// time. Throws ProcessEnded, ProcessHung.
  std::vector<std::byte> ask(std::span<const std::byte> frame, double seconds) {
    return ahead_.ask(*process_, frame, seconds);
  }

  /// What the running process will be asked soon (see Lookahead). Throws as `ask` does.
  void begin_foreseeing(double seconds) { ahead_.begin(*process_, seconds); }
  bool foresee(std::vector<std::byte> frame, double seconds) {
    return ahead_.send(*process_, std::move(frame), seconds);
  }
  bool waits() const { return ahead_.waits(); }

 private:
  Subject subject_;
  std::unique_ptr<Process> process_;
  Lookahead ahead_;
  int starts_ = 0;
};

/// Starts the process, if it does not run, and loads the subject in it as this loss. Throws
/// SubjectError where that cannot be done; where the process is to blame, it is gone then.
Greeting greet(Host& host, const Subject& subject, const LossSignature& loss);

/// How long a subject may take until it is loaded, and what is said where it takes longer. To
/// import torch from a cold disk takes its time; to open a library does not.
struct Loading {
  double seconds;
  const char* late;
};
Loading loading_of(const Subject& subject);

}  // namespace lossgate::impl
