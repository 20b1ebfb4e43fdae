// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "impl/external/config.h"

/// What tests declare of a subject, a Python function of some loss.
namespace lossgate::impl {

using FindLoss = const LossSignature* (*)(std::string_view id);

inline Subject given_subject(const std::string& lines, const std::string& loss, FindLoss find) {
  const std::string head = "[[subject]]\nentry = 'py:mine.py:f'\nloss = '" + loss + "'\n";
  return parse_config(head + lines, "lossgate.toml", "/somewhere", find).at(0);
}

/// What is said of lines that declare none; empty where they do.
inline std::string complaint_of(const std::string& lines, const std::string& loss, FindLoss find) {
  try {
    given_subject(lines, loss, find);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace lossgate::impl
