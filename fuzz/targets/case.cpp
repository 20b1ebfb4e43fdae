// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "corpora/text_codec.h"
#include "reference/reference.h"

/// Whatever is read as a case is written as one that reads back the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lossgate;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Case c = corpora::decode(text, "the input", reference::find_signature);
    const LossSignature& signature = *reference::find_signature(c.spec.loss);
    const Case again =
        corpora::decode(corpora::encode(c, signature), "its text", reference::find_signature);
    if (corpora::case_id(again) != corpora::case_id(c)) std::abort();
  } catch (const corpora::FormatError&) {
  }
  return 0;
}
