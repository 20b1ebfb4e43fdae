// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "corpora/safetensors.h"
#include "impl/external/subject.h"

namespace lossgate::impl {

/// What a subject says of itself once it is loaded.
struct Greeting {
  Source source;
  std::string code;  ///< the function's first line
  std::vector<std::pair<std::string, std::string>> versions;
  std::vector<std::pair<std::string, std::string>> arguments;  ///< parameter to source
  std::vector<std::string> options;                            ///< that reach the function
  std::vector<std::string> facts;                              ///< of the step, that do
  bool reduction = false;                                      ///< whether its name does
  /// An option to the one whose value it must have: one parameter stands for both.
  std::vector<std::pair<std::string, std::string>> tied;
  /// What those of its parameters stand at by themselves that stand for options.
  std::vector<std::pair<std::string, OptionValue>> defaults;
  /// Parameters that get a field and are None by themselves: callers may leave them out.
  std::vector<std::string> omissible;
  /// Parameters that nothing reaches, to their defaults as Python writes them.
  std::vector<std::pair<std::string, std::string>> left;

  bool operator==(const Greeting&) const = default;
};

/// Whether a field reaches the function.
bool takes(const Greeting& greeting, const Field& field);

/// The optional fields that do not.
std::vector<std::string> optional_fields_not_taken(const Greeting& greeting,
                                                   const LossSignature& loss);

/// Its tied options, but for those that the subject declares by themselves.
std::vector<std::pair<std::string, std::string>> tied_options(const Greeting& greeting,
                                                              const Subject& subject);

/// Narrows the subject to what its parameters can be told: tied options, groups of one size, no
/// optional field that it does not take.
void heed(const Greeting& greeting, const LossSignature& loss, Subject& subject);

/// The axes of outputs that no field has: a step says how long they are, as facts of these names.
std::vector<Axis> axes_of_outputs_alone(const LossSignature& loss);
inline std::string extent_fact(Axis axis) { return "extent_" + std::string(name(axis)); }

/// The request that loads a subject as this loss (see PROTOCOL.md).
corpora::TensorFile hello(const Subject& subject, const LossSignature& loss);

/// What the answer to it says. Throws nlohmann::json::exception where it is not understood.
Greeting greeting_of(const corpora::TensorFile& answer);

/// The metadata under a key, empty where there are none.
std::string text_of(const corpora::TensorFile& message, std::string_view key);

}  // namespace lossgate::impl
