// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "corpora/safetensors.h"
#include "impl/external/greeting.h"
#include "impl/external/guilty_line.h"

/// What a brought loss's process answers: tensors, and what it says of itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lossgate;
  try {
    const corpora::TensorFile frame =
        corpora::read_tensors(std::as_bytes(std::span(data, size)), "the input");
    if (corpora::read_tensors(corpora::write_tensors(frame), "its bytes") != frame) std::abort();
    impl::guilty_of(frame);
    impl::greeting_of(frame);
  } catch (const corpora::FormatError&) {
  } catch (const nlohmann::json::exception&) {
  }
  return 0;
}
