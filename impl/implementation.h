// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reference/spec/arithmetic.h"
#include "reference/spec/case.h"
#include "reference/spec/result.h"

namespace lossgate::impl {

/// What an implementation promises beyond the formula. A question outside the contract is skipped,
/// with that reason.
struct Contract {
  bool non_finite_masked = true;  ///< masked data may be infinite or NaN (rule C4)
  bool refuses_invalid = true;    ///< invalid input is refused (rule C7)
  bool deterministic = true;      ///< same input, same bits
  bool infinite_valid = true;     ///< infinities at valid positions, as each field declares
  bool grad_modes = true;         ///< no gradient, some, or among calls of other data (rule E11)
  bool int32_labels = true;       ///< labels may have 32 bits, where their field may
  bool non_contiguous = true;     ///< tensors may be views of other memory (rule E12)
  bool uneven_groups = true;      ///< groups may differ in size and lie anywhere
  bool repeated_tokens = true;    ///< a list may name a token twice
  bool scattered_mask = true;     ///< what counts of a sequence may lie anywhere in it
  bool masked_outputs = true;     ///< what comes back at masked positions is 0
  bool autocast = false;          ///< its forward may run inside torch.autocast (rule E11)
  bool splits = true;             ///< what micro-batches and ranks give adds up to the whole
  bool uneven_parts = true;       ///< micro-batches of a rank may differ in how much they hold
  bool uneven_ranks = true;       ///< ranks may
  Empty empty = Empty::zero;
  EmptyRows empty_rows = EmptyRows::skipped;
};

/// Where the code under test lives, for findings.
struct Source {
  std::string file;
  int line = 0;
  std::string flags = {};  ///< of the command, by which the same code is found again

  bool operator==(const Source&) const = default;
};

/// Where a number that is not finite begins: the line, and what it does there.
struct Origin {
  Source source;
  std::string text;
};

/// The argument of a Refusal which says that the whole question is beyond the implementation, not
/// that something is wrong with it.
inline constexpr const char* kNotComputed = "not computed";

/// The argument of one which says that what came back is no result of the loss.
inline constexpr const char* kNoResult = "no result";

/// Why an implementation is wrong on purpose, and what must notice.
struct Fault {
  std::string twin;                  ///< the sound implementation from which it deviates
  std::string thread;                ///< public thread or source
  std::string cause;                 ///< root-cause class
  std::string trigger;               ///< what a case must hold for the fault to show
  std::vector<std::string> killers;  ///< every property that must be violated
  bool of_length = false;            ///< only cases that are drawn to be long show it
};

/// Anything that computes a loss and its gradient.
struct Implementation {
  std::string name;
  std::string loss;
  std::string device = "cpu";
  /// Whether callers differentiate it when they want to (see GradMode), or not where it returns
  /// every gradient with its loss.
  bool autograd = false;
  Source source;
  Contract contract;
  std::optional<Fault> fault;
  /// Why a case cannot be asked of it (an option or a dtype that it does not have), if so.
  std::function<std::optional<std::string>(const Case&)> unsupported;
  /// Whether an argument reaches it as the case has it, by the name that a Refusal gives it. Empty:
  /// all do.
  std::function<bool(const Case&, std::string_view argument)> hears;
  /// How it computes when the floating-point fields are stored in this dtype.
  std::function<Arithmetic(Dtype)> arithmetic;
  /// The whole of a training step's loss work, in the micro-batches and on the ranks of the case's
  /// split. Combining partial results is its own business.
  std::function<LossResult(const LossSignature&, const Case&)> evaluate;
  /// Told of cases that it will be asked to evaluate soon, so that whoever computes elsewhere can
  /// begin; of none, where what it was told before will not be asked any more. Empty where nothing
  /// is gained.
  std::function<void(const LossSignature&, const std::vector<const Case*>&)> foresee;
  /// Evaluates again and watches for the first operation that makes something non-finite of what is
  /// finite. Empty where nobody can look inside.
  std::function<std::optional<Origin>(const LossSignature&, const Case&)> origin;
};

}  // namespace lossgate::impl
