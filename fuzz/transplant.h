// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// Moving data between cases. The atom is a position: what a domain promises (a row of
/// probabilities, a label of the vocabulary) it promises of each position by itself, so positions
/// that count in both cases may change places.
namespace lossgate::fuzz {

/// Some positions of a [sequences, tokens] rectangle.
class Region {
 public:
  Region(const Case& c, bool all);

  bool has(std::int64_t sequence, std::int64_t token) const {
    return inside(sequence, token) && in_[at(sequence, token)];
  }
  void set(std::int64_t sequence, std::int64_t token, bool in) { in_[at(sequence, token)] = in; }
  std::int64_t sequences() const { return sequences_; }
  std::int64_t tokens() const { return tokens_; }

 private:
  bool inside(std::int64_t sequence, std::int64_t token) const {
    return sequence < sequences_ && token < tokens_;
  }
  std::size_t at(std::int64_t sequence, std::int64_t token) const {
    return static_cast<std::size_t>(sequence * tokens_ + token);
  }

  std::int64_t sequences_, tokens_;
  std::vector<bool> in_;
};

/// The positions that count.
Region valid_region(const LossSignature& signature, const Case& c);

/// The positions that count in both cases.
Region common_region(const LossSignature& signature, const Case& a, const Case& b);

/// Copies the field's entries at these positions, which both cases have. Their rows must be alike.
void copy_positions(const Region& region, const Tensor& from, std::int64_t from_tokens, Tensor& to,
                    std::int64_t to_tokens);

/// Whether a tensor of one case can stand in the place of the other's.
bool is_alike(const Tensor& a, const Tensor& b);

/// The same of one position, or of any entry of fields that have none.
bool has_like_rows(const Field& field, const Tensor& a, const Tensor& b);

/// Whether the shape follows from what the fields say, as that of a message does.
bool shape_follows_data(const LossSignature& signature);

/// Copies the field at those positions; all of it where it has none, if they are alike.
void take(const Field& field, const Case& from, const Region& region, Case& to);

/// Whether what the field holds at the positions of the case that count may stand there under these
/// options, too.
bool may_stand(const LossSignature& signature, const Field& field, const Case& c,
               const LossSpec& spec);

/// Whether the options are for such a batch: its empty sequences, its infinities.
bool accepts(const LossSignature& signature, const Case& c, const LossSpec& spec);

}  // namespace lossgate::fuzz
