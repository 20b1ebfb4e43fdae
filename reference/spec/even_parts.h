// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// Steps of callers whose micro-batches hold equally many sequences that count, and whose ranks
/// hold equally many micro-batches (LossSignature::even_parts): the mean of the parts' means over
/// sequences is the mean over all. Which sequences count is what such a mean divides by: those with
/// a valid position, or all of them where EmptyRows are counted.
namespace lossgate {

/// Whether the case's split has such parts, or need not: where the signature does not say so, where
/// there is no split, and where nothing counts, which gives 0 however it is dealt.
bool has_even_parts(const LossSignature& signature, const Case& c);

/// Where it must and has not, deals the sequences anew, in their order: to about as many parts, two
/// at least, on as many ranks as these allow; to none where they come out even in no such way.
void make_parts_even(const LossSignature& signature, Case& c);

}  // namespace lossgate
