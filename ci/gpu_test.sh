#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where there is no GPU, ci/gpu.sh names what it did not run, and touches nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "$1"
  exit 1
}

# A machine whose nvidia-smi finds nothing.
fake=$(mktemp -d)
trap 'rm -rf "$fake"' EXIT
printf '#!/bin/sh\nexit 9\n' >"$fake/nvidia-smi"
chmod +x "$fake/nvidia-smi"
before=$(ls -l ci/gpu)
said=$(PATH=$fake:$PATH ./ci/gpu.sh 123) || fail "ci/gpu.sh does not exit with 0"
for word in "not run" "123 cases" compute-sanitizer bandwidth; do
  [[ $said == *"$word"* ]] || fail "ci/gpu.sh does not say '$word': $said"
done
[[ $(ls -l ci/gpu) == "$before" ]] || fail "ci/gpu.sh writes into ci/gpu without a GPU"
