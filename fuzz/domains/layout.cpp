// SPDX-License-Identifier: Apache-2.0
#include "fuzz/domains/layout.h"

namespace lossgate::fuzz {
namespace {

constexpr Share<Layout> kLayouts[] = {
    {Layout::contiguous, {8, 2, 2}}, {Layout::offset, {0, 1, 1}}, {Layout::padded_rows, {1, 1, 1}},
    {Layout::transposed, {1, 1, 1}}, {Layout::sliced, {1, 1, 1}}, {Layout::mixed, {2, 4, 4}},
};

}  // namespace

Layout draw_layout(Temper temper, Choices& choices) { return pick(kLayouts, temper, choices); }

}  // namespace lossgate::fuzz
