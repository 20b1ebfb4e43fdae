// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "impl/external/c/call.h"

namespace lossgate::impl {

/// Answers requests (see PROTOCOL.md) for a function of a shared library, in the process in which
/// the library is opened.
class LibraryConversation {
 public:
  std::vector<std::byte> answer(std::span<const std::byte> frame);

  const FencedArrays& arrays() const { return arrays_; }

 private:
  corpora::TensorFile hello(const corpora::TensorFile& request);
  corpora::TensorFile step(const corpora::TensorFile& request);

  FencedArrays arrays_;
  std::optional<LibraryFunction> function_;
  LibraryLoss loss_;
  std::set<std::string, std::less<>> taken_;
};

/// The verb `library-worker`: answers on the descriptors that were standard input and output, until
/// the other side closes.
int serve_library();

}  // namespace lossgate::impl
