// SPDX-License-Identifier: Apache-2.0
#include "corpora/safetensors.h"

#include <cstdlib>

#include "corpora/case_id.h"
#include "reference/reference.h"

/// Whatever is read as a safetensors dump of a case is written as one that reads back the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lossgate;
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const Case c = corpora::decode_safetensors(bytes, "the input", reference::find_signature);
    const Case again = corpora::decode_safetensors(corpora::encode_safetensors(c), "its bytes",
                                                   reference::find_signature);
    if (corpora::case_id(again) != corpora::case_id(c)) std::abort();
  } catch (const corpora::FormatError&) {
  }
  return 0;
}
