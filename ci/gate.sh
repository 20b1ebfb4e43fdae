#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare machine to a verdict: sets up, builds the command, runs the gate on the CPU. Arguments go
# to `lossgate gate`. LOSSGATE_TORCH=OFF leaves LibTorch and its implementations away.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=default
[[ ${LOSSGATE_TORCH:-ON} == OFF ]] && preset=no-torch

./ci/setup.sh
cmake --preset "$preset" --log-level=WARNING >/dev/null
cmake --build --preset "$preset" --target lossgate

status=0
"build/$preset/bin/lossgate" gate @ci/profiles/gate.args --out run "$@" || status=$?
echo "gate: exit status $status; the results lie in $PWD/run"
exit "$status"
