#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles every kernel with nvcc for each architecture and for PTX, no GPU needed, and reads what
# ptxas says of it: a kernel that spills registers fails. The report is kept.
#   ci/cuda.sh [REPORT]    default: ci/gpu/ptxas.txt
# LOSSGATE_NVCC_HOST names the host compiler (clang++-19).
set -euo pipefail
cd "$(dirname "$0")/.."
report=${1:-ci/gpu/ptxas.txt}
architectures=(80 90 100)

if ! command -v nvcc >/dev/null; then
  echo "cuda: no nvcc on the PATH, nothing compiled"
  exit 0
fi

# The flags of impl/cuda/CMakeLists.txt: no fast-math, and no contraction, so that the device rounds as
# often as the host form does.
flags=(-std=c++20 -O3 -ccbin "${LOSSGATE_NVCC_HOST:-clang++-19}" -I. -fmad=false --expt-relaxed-constexpr
  -Werror all-warnings -Xptxas -v)
for architecture in "${architectures[@]}"; do
  flags+=(-gencode "arch=compute_$architecture,code=sm_$architecture")
done
newest=${architectures[-1]}
flags+=(-gencode "arch=compute_$newest,code=compute_$newest")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for kernel in impl/cuda/*.cu; do
  nvcc "${flags[@]}" -c "$kernel" -o "$folder/$(basename "$kernel" .cu).o" 2>>"$folder/log" ||
    { cat "$folder/log" >&2; exit 1; }
done

mkdir -p "$(dirname "$report")"
python3 ci/ptxas.py "$folder/log" "$(nvcc --version | sed -n 's/.*release \(.*\), .*/\1/p')" >"$report" ||
  { cat "$report" >&2; exit 1; }
tail -n 1 "$report"
