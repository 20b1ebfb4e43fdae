// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "corpora/safetensors.h"

namespace lossgate::corpora {

/// What a training run left of the step that went wrong (FORMAT.md, "What watch writes"): the
/// tensors under the names that the trainer gave them, and what came out of the loss there.
struct Dump {
  /// A number, a word or None that the loss was given besides tensors.
  struct Given {
    std::string name;
    Option::Kind kind = Option::Kind::real;
    OptionValue value;
    bool operator==(const Given&) const = default;
  };

  std::string loss;  ///< what the trainer called it; empty where the names are its own
  std::vector<std::pair<std::string, Tensor>> fields;
  std::vector<std::pair<std::string, Tensor>> gradients;  ///< by field, as they were observed
  std::optional<Tensor> observed;                         ///< the loss
  double upstream = 1.0;
  std::vector<Given> given;
  std::vector<std::string> differentiable;               ///< fields
  std::vector<std::int64_t> rows, tokens;                ///< of the batch, that were kept
  std::vector<std::int64_t> whole;                       ///< its sequences and tokens
  std::map<std::string, std::int64_t> counts;            ///< of the whole batch, by mask or label
  std::vector<std::pair<std::string, std::string>> run;  ///< step, rank, device, versions, ...

  const Tensor* find_field(std::string_view name) const;
  const Tensor* find_gradient(std::string_view field) const;
  const Given* find_given(std::string_view name) const;
  std::string run_fact(std::string_view key) const;  ///< empty where it is not said

  bool operator==(const Dump&) const = default;
};

/// Whether `watch` wrote the file, and not somebody who names tensors and metadata as a case does.
bool is_dump(const TensorFile& file);

/// Throws FormatError; what a newer version wrote is refused with that version.
Dump dump_of(TensorFile file, std::string_view file_name);

/// The same as a file of a case of that loss: tensors in the dtypes and shapes of its fields,
/// without what was observed. A field that was not kept is 0, and where it is the mask, 1. Throws
/// FormatError.
TensorFile case_file_of(Dump dump, const LossSignature& signature, std::string_view file_name);

}  // namespace lossgate::corpora
