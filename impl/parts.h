// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/spec/case.h"

/// The copies of a case's rows that the steps of a trainer get, and may spoil.
namespace lossgate::impl {

/// The case of one micro-batch.
Case take_part(const LossSignature& signature, const Case& c,
               const std::vector<std::int64_t>& rows);

/// The whole case in one part, in the storage of the last small one on this thread: what a small
/// case costs is mostly its allocations.
class WholePart {
 public:
  explicit WholePart(const Case& c);
  ~WholePart();
  WholePart(const WholePart&) = delete;
  WholePart& operator=(const WholePart&) = delete;

  Case& operator*() { return part_; }

 private:
  Case part_;
};

/// Names the fields of the part that are no longer what was taken from the case; `rows` null took
/// all.
void note_mutations(const LossSignature& signature, const Case& c, const Case& part,
                    const std::vector<std::int64_t>* rows, std::vector<std::string>& mutated);

}  // namespace lossgate::impl
