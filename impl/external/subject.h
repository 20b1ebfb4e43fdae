// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "impl/external/declared_arithmetic.h"
#include "impl/implementation.h"
#include "reference/spec/signature.h"

namespace lossgate::impl {

/// What a trainer does with the losses of micro-batches, or of ranks.
enum class Combination {
  none,            ///< it never splits, or nobody knows: splits are not asked
  sum,             ///< gradients add up
  mean,            ///< each counts the same
  token_weighted,  ///< each counts by its valid tokens
};

/// A loss that a user brings: what it computes, how it is called, and what it promises. One
/// [[subject]] of a lossgate.toml.
struct Subject {
  std::string name;
  std::string loss;
  std::shared_ptr<const LossSignature> own;  ///< of a loss that is not in the catalog, else null
  /// py:FILE.py:FUNCTION, py:PACKAGE.MODULE:FUNCTION, so:LIBRARY.so:FUNCTION, or
  /// fd:REQUESTS:REPLIES for one that is served on two open descriptors.
  std::string entry;
  std::string interpreter = "python3";  ///< one with a slash begins at `folder`
  std::filesystem::path folder;         ///< where it runs, and where relative paths begin
  std::vector<std::string> path;        ///< more folders to import from
  std::vector<std::pair<std::string, std::string>> environment;
  std::string device = "cpu";
  int threads = 1;
  std::vector<Reduction> reductions;                         ///< empty: all of the loss
  std::vector<std::pair<std::string, OptionValue>> options;  ///< what it computes whatever is asked
  /// The option by whose square what it returns is multiplied (Hinton's T^2), empty where it is
  /// not.
  std::string scaled_by;
  std::vector<std::string> outputs;  ///< what it returns besides the loss
  bool per_token = false;            ///< it returns the terms, and its trainer reduces them
  /// It returns `outputs`, in their order, and its trainer makes the loss of what weighs them.
  bool weighed_outputs = false;
  std::vector<Dtype> dtypes = {Dtype::f32};
  std::vector<std::string> wide;  ///< fields that stay in f32 where `dtypes` has 16 bits
  std::vector<std::pair<std::string, std::string>> arguments;  ///< parameter to source
  std::vector<std::string> without;                            ///< optional fields, none of it
  std::vector<std::string> omitted;  ///< optional fields that a twin's callers leave out
  bool omitted_fields = true;        ///< whether callers may, where None is the default
  std::vector<std::pair<std::string, std::string>> tied;  ///< option to the one it follows
  Combination micro_batches = Combination::none, ranks = Combination::none;
  DeclaredArithmetic arithmetic;
  std::vector<std::pair<Axis, std::int64_t>> axes;     ///< that have one extent
  std::vector<std::pair<Axis, std::int64_t>> longest;  ///< that its caller keeps as short
  Contract contract = {.refuses_invalid = false,
                       .infinite_valid = false,
                       .int32_labels = false,
                       .repeated_tokens = false};
  Masked masked = Masked::finite;                 ///< what its caller leaves at masked positions
  std::map<std::string, Masked> masked_of_field;  ///< where a field differs
  std::map<std::string, double> largest;          ///< of fields whose numbers it keeps as small
  double seconds = 20.0;                          ///< for one call
  std::int64_t megabytes = 0;                     ///< of memory for its process; 0: no limit
  std::int64_t most_cases = 0;                    ///< drawn for each dtype; 0: what the gate asks
};

/// Whether an argument with this source is handed over `as` the word, whatever else it is made.
bool is_converted(std::string_view source, std::string_view word);

/// The word of an argument whose positions all have the number that its sequence has once.
inline constexpr const char* kExpanded = "expanded";

/// Whether a caller may keep the field's numbers small.
bool holds_numbers(const Field& field);

/// What is taken in place of an optional field that callers have none of.
std::string in_place_of(const Field& field);

/// The output of the loss that the field weighs, as `log_prob_weight` weighs `log_prob`: in the
/// loss they meet as a product alone, so that the field is the gradient which comes into the
/// output. Null where it weighs none.
const OutputField* weighed_output(const LossSignature& loss, const Field& field);

/// Why its forward is never asked inside torch.autocast, nothing where it can be.
std::string_view beyond_autocast(const Subject& subject, const LossSignature& loss);

/// In place of an option's one value: any number, and never none.
inline constexpr const char* kAnyNumber = "number";
inline bool is_any_number(const OptionValue& value) {
  return value == OptionValue(std::string(kAnyNumber));
}

/// The loss as the subject computes it: options that it fixes have one value, or any number, one
/// that it is scaled by is 1 or 2, whose squares divide without rounding, reductions are those that
/// it has, options that are tied have one value, axes that it pins have
/// one extent, fields that it has none of are 0, without a gradient, as is what weighs an output
/// that it does not return, wide ones stay in f32, only
/// what it returns is an output, and masked positions, infinities, the largest numbers, splits and
/// their parts, empty batches and empty rows, and autocast are what its contract says. Cases drawn
/// for this signature are cases of the loss.
LossSignature narrowed(const LossSignature& loss, const Subject& subject);

/// The subject cannot be asked: the message says what to do.
struct SubjectError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Parameters of the function stand for nothing of the loss.
struct ParametersUnmatched : SubjectError {
  ParametersUnmatched(const std::string& why, std::vector<std::string> taken_ones,
                      std::vector<std::string> lacking_ones)
      : SubjectError(why), taken(std::move(taken_ones)), lacking(std::move(lacking_ones)) {}
  std::vector<std::string> taken;    ///< that have a source
  std::vector<std::string> lacking;  ///< that have none, and no default
};

/// It crashed or hung so often that this process starts it no more.
struct SubjectWornOut : SubjectError {
  using SubjectError::SubjectError;
};

}  // namespace lossgate::impl
