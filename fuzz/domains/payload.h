// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/domains/column.h"
#include "fuzz/profile.h"

namespace lossgate::fuzz {

/// The one way in which a message deviates from what it should be.
enum class Deviation {
  none,
  one_lacks_array,   ///< an optional array that the other responses have, or the reverse
  no_prompt,         ///< prompt length 0
  prompt_at_length,  ///< prompt length >= sequence length
  lists_differ,      ///< more log-probs than ids
  nan,
  plus_infinity,
  negative_id,
  another_sequence,  ///< one too many, or one too few
  cut_base64,        ///< without its last characters
  bad_base64,        ///< a character that is none of the alphabet's, or one that is
  wrong_count,       ///< a list of lengths with one more
  absurd_size,       ///< a length that nothing could have
  key_missing,
  key_unknown,
  cut_message,
  other_bytes,  ///< a few bytes replaced
  noise,        ///< nothing but random bytes
};

inline constexpr Deviation kAllDeviations[] = {Deviation::none,
                                               Deviation::one_lacks_array,
                                               Deviation::no_prompt,
                                               Deviation::prompt_at_length,
                                               Deviation::lists_differ,
                                               Deviation::nan,
                                               Deviation::plus_infinity,
                                               Deviation::negative_id,
                                               Deviation::another_sequence,
                                               Deviation::cut_base64,
                                               Deviation::bad_base64,
                                               Deviation::wrong_count,
                                               Deviation::absurd_size,
                                               Deviation::key_missing,
                                               Deviation::key_unknown,
                                               Deviation::cut_message,
                                               Deviation::other_bytes,
                                               Deviation::noise};

Deviation pick_deviation(Temper temper, Choices& choices);

/// The responses of a teacher server to a batch of this shape, one a row, in the JSON form or the
/// binary form. The columns are all payload fields of the case, drawn before any other field. A
/// message is as long as what it says: the axis `bytes` gets its extent here, and the tensors their
/// sizes.
void draw_payload(Columns columns, Shape& shape, Temper temper, Choices& choices);

}  // namespace lossgate::fuzz
