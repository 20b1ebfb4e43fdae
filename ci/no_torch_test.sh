#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Without LibTorch everything else builds, and the command lists, gates and replays.
#   ci/no_torch_test.sh BUILD_FOLDER
set -euo pipefail
build=$1
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

cmake --preset no-torch -B "$build" --log-level=WARNING >/dev/null
cmake --build "$build" --target lossgate
lossgate=$build/bin/lossgate

if ldd "$lossgate" | grep -i torch; then
  echo "the command is linked to LibTorch"
  exit 1
fi
"$lossgate" list
# Too few cases to kill every faulty variant, so a sound one is asked alone.
"$lossgate" gate @ci/profiles/gate.args --impl host --cases 8 --out "$out"
"$lossgate" replay regressions/0003-unbounded-exp-at-a-padded-position.case
