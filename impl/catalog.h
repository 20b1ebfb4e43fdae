// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "impl/implementation.h"

namespace lossgate::impl {

/// All implementations, sound before faulty, in the order in which they are listed. Opens the
/// LibTorch library unless told not to; that takes most of a second, once. Two catalogs are kept,
/// with and without it; references stay valid.
const std::vector<Implementation>& catalog(bool with_torch = true);

/// Of the whole catalog; null where there is none.
const Implementation* find(std::string_view loss, std::string_view name);

/// The sound implementation whose copy a faulty one is; null where it is not there.
const Implementation* twin_of(const Implementation& faulty);

/// Empty where the LibTorch implementations are loaded, else one line that says why they are not.
/// Opens the library.
std::string_view torch_status();

/// Where the LibTorch library will be opened from; empty where there is none. Opens nothing.
/// LOSSGATE_TORCH_LIBRARY in the environment names another.
std::string torch_library();

}  // namespace lossgate::impl
