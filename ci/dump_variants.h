// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "corpora/dump.h"

/// Dumps that differ from a given one in a single thing.
namespace lossgate::ci {

/// The rows and tokens that are in the dump; empty where it has no gradient and no such field.
std::vector<std::int64_t> positions_of(const corpora::Dump& dump);

/// Which [rows, tokens] count: of labels, masks and numbers, and of logits and other rows of
/// numbers, which a function that shifts labels pairs with the next label.
struct Counted {
  std::vector<bool> of_numbers, of_rows;

  const std::vector<bool>& of(const Tensor& tensor) const {
    return tensor.extents.size() > 2 ? of_rows : of_numbers;
  }
};

/// With zeros in all fields where nothing counts; nothing where everything counts.
std::optional<corpora::Dump> masked_zeroed(const corpora::Dump& dump, const Counted& counted);

/// With a token that counts in each row that has none; nothing where every row has one.
std::optional<corpora::Dump> rows_counted(const corpora::Dump& dump,
                                          const std::vector<bool>& counted);

/// An input that was not finite where it counts.
struct BadInput {
  std::string field;
  std::int64_t index = -1;
  std::string value;
  bool may_be_meant = false;  ///< an infinity among finite numbers of a row: a forbidden token
  corpora::Dump repaired;     ///< with 0 in place of all such inputs
};
std::optional<BadInput> bad_input(const corpora::Dump& dump, const std::optional<Counted>& counted);

std::vector<std::int64_t> coordinates(const Extents& extents, std::int64_t index);

/// "[17, 3]": of the batch in the training run, of which the dump may hold a few rows.
std::string coordinates_text(const corpora::Dump& dump, std::vector<std::int64_t> at);

/// "log_prob[17, 3]".
std::string place_text(const corpora::Dump& dump, const std::string& field, std::int64_t index);

}  // namespace lossgate::ci
