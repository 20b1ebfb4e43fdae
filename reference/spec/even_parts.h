// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/spec/case.h"
#include "reference/spec/signature.h"

/// Steps of callers who average what parts of the batch give. Of a rank with k micro-batches, of
/// which p holds S_p sequences that count, the mean of the micro-batches' means over sequences
/// weighs each sequence by 1/(k S_p), and the mean over the rank by 1/S_r, with S_r the sum of the
/// S_p: they are one where every S_p is S_r/k, that is where micro-batches of one rank hold equally
/// many (LossSignature::even_parts). Of W ranks the mean of their means weighs by 1/(W S_r), and
/// the mean over all S by 1/S: they are one where every S_r is S/W, that is where ranks hold
/// equally many in total (LossSignature::even_ranks), in whatever micro-batches. Neither asks for
/// the other: who averages both needs both, and ranks may still have more micro-batches than
/// others, of fewer sequences. Which sequences count is what such a mean divides by: those with a
/// valid position, or all of them where EmptyRows are counted.
namespace lossgate {

/// Whether the case's split has such parts, or need not: where the signature does not say so, where
/// there is no split, and where nothing counts, which gives 0 however it is dealt. A rank without a
/// micro-batch holds none.
bool has_even_parts(const LossSignature& signature, const Case& c);

/// Where it must and has not, deals the sequences anew, in their order: to as many ranks as come
/// out even, and on each to about as many parts, two at least. Ranks stay what they are where they
/// need not be even, and so do parts, but for one that two ranks share. No split is left where one
/// part on one rank would be.
void make_parts_even(const LossSignature& signature, Case& c);

}  // namespace lossgate
