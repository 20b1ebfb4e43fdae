#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where there is no GPU, ci/gpu.sh names what it did not run, and touches nothing; where there is one it
# runs what a prepared folder holds, and says so in a record and a page.
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
for word in "not run" "123 cases" torch compute-sanitizer bandwidth; do
  [[ $said == *"$word"* ]] || fail "ci/gpu.sh does not say '$word': $said"
done
[[ $(ls -l ci/gpu) == "$before" ]] || fail "ci/gpu.sh writes into ci/gpu without a GPU"

# A machine with a GPU, and programs that answer at once.
printf '#!/bin/sh\necho "GPU 0: none"\n' >"$fake/nvidia-smi"
mkdir "$fake/bin" "$fake/out"
touch "$fake/bin/liblossgate_torch.so" "$fake/bin/liblossgate_fused.so"
for program in impl_test fused_test compute-sanitizer; do printf '#!/bin/sh\n' >"$fake/bin/$program"; done
cat >"$fake/bin/lossgate" <<'EOT'
#!/bin/bash
while [[ $1 != --out ]]; do shift; done
mkdir -p "$2"
echo '{"cells": []}' >"$2/run.json"
EOT
cat >"$fake/bin/kernel_benchmark" <<'EOT'
#!/bin/bash
for argument; do [[ $argument != --benchmark_out=* ]] || echo '{"benchmarks": []}' >"${argument#*=}"; done
EOT
# torch finds the GPU; one of the tests fails.
printf '#!/bin/bash\n[[ $* != *bad_input* ]]\n' >"$fake/bin/python"
chmod +x "$fake"/bin/*
status=0
said=$(PATH=$fake:$fake/bin:$PATH LOSSGATE_GPU_BIN=$fake/bin LOSSGATE_GPU_OUT=$fake/out \
  LOSSGATE_GPU_PYTHON=$fake/bin/python ./ci/gpu.sh 5 2>&1) || status=$?
[[ $status == 1 ]] || fail "a failed test in torch gives status $status: $said"
page=$(cat "$fake/out/GPU.md")
for words in "operators_fused passed, bad_input exit 1" "memcheck silent, racecheck silent" "0 cells differ"; do
  [[ $page == *"$words"* ]] || fail "the page lacks '$words': $page"
done
