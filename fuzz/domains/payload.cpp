// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/payload.h"

namespace lossgate::fuzz {

void draw_payload(Columns columns, Temper temper, Choices& choices) {
  for (const Column& column : columns) {
    const bool text = temper == Temper::plain || choices.sometimes(0.5);
    for (std::byte& byte : column.tensor->bytes) {
      byte = static_cast<std::byte>(text ? choices.integer(' ', '~') : choices.integer(0, 255));
    }
  }
}

}  // namespace lossgate::fuzz
