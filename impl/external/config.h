// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "impl/external/subject.h"

namespace lossgate::impl {

/// A mistake in a lossgate.toml: file, line, column, what stands there and what may.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Looks a loss up by its id; null where there is none.
using FindSignature = const LossSignature* (*)(std::string_view id);

/// How a subject is called where it is asked on several devices.
std::string on_device(const std::string& name, const std::string& device);

/// The subjects of a lossgate.toml, in its order; one with several devices is a subject for each.
/// `file` is how messages call it, relative paths begin at `folder`; of the `known` losses one that
/// was probably meant is named. Throws ConfigError.
///
///   [[subject]]
///   name = "mine"                       # how findings call it
///   loss = "grpo"                       # `lossgate list losses`
///   entry = "py:losses.py:ppo_loss"     # or "py:package.module:function", "so:libours.so:ppo"
///   options = { dual_clip = "none" }    # what it computes, whatever is asked; others are passed
///
/// The other keys and their defaults are those of Subject; impl/external/README.md lists them.
std::vector<Subject> parse_config(std::string_view text, const std::string& file,
                                  const std::filesystem::path& folder, FindSignature find,
                                  const std::vector<std::string>& known = {});

}  // namespace lossgate::impl
