#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare machine to tested: sets up, builds everything, runs every test. Arguments go to ctest.
# LOSSGATE_PRESET names another preset, such as asan; LOSSGATE_TORCH=OFF leaves LibTorch away.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${LOSSGATE_PRESET:-default}
[[ $preset == default && ${LOSSGATE_TORCH:-ON} == OFF ]] && preset=no-torch

./ci/setup.sh
cmake --preset "$preset" --log-level=WARNING >/dev/null
cmake --build --preset "$preset"
ctest --preset "$preset" -j "$(nproc)" "$@"
