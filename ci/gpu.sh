#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The last step of the kernels, on a machine with a GPU: the gate with the same cases on CPU and GPU,
# twice, the operators in torch, compute-sanitizer where it is installed, and benchmarks beside the
# device's copy bandwidth. Writes ci/gpu/gpu.json and ci/gpu/GPU.md. Without a GPU it says what was not
# run and exits with 0.
#   ci/gpu.sh [CASES]            default: 20000 for each loss and dtype; 300 took five minutes on an H200, 16 cores beside it
#   ci/gpu.sh --prepare FOLDER   builds here what a machine lacks that has a driver and torch alone: no
#                                compiler, no Debian package, no network. Take the folder there with the
#                                repository, and set LOSSGATE_GPU_BIN to it
# LOSSGATE_GPU_OUT names another folder for the results, LOSSGATE_GPU_PYTHON a Python whose torch sees the
# GPU (python3). liblossgate_torch.so, with which the operators are compared, comes from LOSSGATE_BUILD
# (build/default) and needs torch of its version.
set -euo pipefail
cd "$(dirname "$0")/.."

losses=(linear_jsd sparse_jsd jsd linear_grpo log_prob grpo value_clip)  # those that take longest first
programs=(lossgate kernel_benchmark impl_test fused_test)
torch=${LOSSGATE_BUILD:-build/default}/bin/liblossgate_torch.so

# build FOLDER FLAGS...
build() {
  cmake --preset cuda -B "$1" -DLOSSGATE_TORCH=OFF "${@:2}" >/dev/null
  ninja -C "$1" lossgate_fused "${programs[@]}" >/dev/null
  [[ ! -e $torch ]] || cp "$torch" "$1/bin"
}

# require_little FOLDER: its files ask for what a machine with torch has, or what lies beside them.
require_little() {
  local file foreign
  for file in "$1"/*; do
    foreign=$(objdump -p "$file" | awk '/NEEDED/ {print $2}' |
      sed -E '/^(ld-linux-.*|lib(c|m|dl|rt|pthread|util|stdc\+\+|gcc_s)|lib(torch_cpu|c10|gomp|cu.*))\.so/d' |
      while read -r name; do [[ -e $1/$name ]] || echo "$name"; done)
    [[ -z $foreign ]] || { echo "gpu: $file needs $foreign, which is not in $1" >&2; exit 1; }
  done
  echo "gpu: needs glibc $(objdump -T "$1"/* | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | cut -d_ -f2) or newer"
}

if [[ ${1:-} == --prepare ]]; then
  folder=${2:?name a folder}
  build build/gpu -DLOSSGATE_STATIC=ON
  mkdir -p "$folder"
  rm -f "$folder/commit"
  cp "${programs[@]/#/build/gpu/bin/}" build/gpu/bin/liblossgate_fused.so "$folder"
  if [[ -e $torch ]]; then
    cp "$torch" "$folder"
  else
    echo "gpu: no $torch, the operators in torch cannot be tried there"
  fi
  # Distributions have no archive of it.
  ldd build/gpu/bin/kernel_benchmark | awk '/libbenchmark/ {print $3}' | xargs -r cp -t "$folder"
  strip --strip-unneeded "${programs[@]/#/$folder/}" "$folder"/*.so
  require_little "$folder"
  git describe --always --dirty >"$folder/commit"
  echo "gpu: prepared $folder; there, run LOSSGATE_GPU_BIN=$folder ci/gpu.sh"
  exit 0
fi

cases=${1:-20000}
if ! grep -q '^GPU' <(nvidia-smi -L 2>/dev/null); then
  echo "gpu: not run, no GPU on this machine:"
  echo "  the gate of ${losses[*]} with $cases cases each in f32, bf16, f16 on CPU and GPU"
  echo "  the same again, for the same verdicts and error ratios"
  echo "  the operators in torch: their gradients, graphs, streams, and what they refuse"
  echo "  compute-sanitizer: memcheck, racecheck, initcheck, synccheck"
  echo "  benchmarks beside the copy bandwidth of the device"
  [[ ! -f ci/gpu/ptxas.txt ]] || echo "compiled without one: $(tail -n 1 ci/gpu/ptxas.txt)"
  exit 0
fi

bin=${LOSSGATE_GPU_BIN:-build/gpu/bin}
[[ -n ${LOSSGATE_GPU_BIN:-} ]] || build build/gpu
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# gate LOSS DTYPE FOLDER CASES: the exit status is the gate's, 1 where something is red.
gate() {
  local status=0
  "$bin/lossgate" gate --loss "$1" --impl kernel --impl kernel_gpu --dtype "$2" --profile hostile \
    --cases "$4" --seed 1 --jobs 1 --out "$3/$1-$2" >"$3-$1-$2.log" 2>&1 || status=$?
  ((status < 2)) || { cat "$3-$1-$2.log" >&2; return "$status"; }
}

# gates FOLDER CASES: one for each loss and dtype, as many at a time as there are cores. One that came to no
# verdict ends the script.
gates() {
  local loss dtype running=0
  for loss in "${losses[@]}"; do
    for dtype in f32 bf16 f16; do
      ((running < $(nproc))) || { wait -n || exit 3; running=$((running - 1)); }
      gate "$loss" "$dtype" "$@" &
      running=$((running + 1))
    done
  done
  for ((; running > 0; --running)); do wait -n || exit 3; done
  echo "gpu: gates done after $SECONDS s"
}

# What trainers call, by the tests that lie beside it; where one fails its output is shown.
in_torch() {
  local python=${LOSSGATE_GPU_PYTHON:-python3} test status
  if [[ ! -e $bin/liblossgate_torch.so ]] || ! "$python" -c 'import torch; torch.zeros(1, device="cuda")' 2>/dev/null; then
    echo "gpu: no torch that sees the GPU, or no liblossgate_torch.so: operators not run"
    return
  fi
  for test in operators_fused bad_input; do
    status=0
    LOSSGATE_FUSED=$(realpath "$bin/liblossgate_fused.so") "$python" "impl/cuda/fused/${test}_test.py" \
      "$bin/liblossgate_torch.so" >"$results/$test.log" 2>&1 || status=$?
    ((status == 0)) || cat "$results/$test.log" >&2
    echo "$test $status" >>"$results/torch"
  done
}

# The tools of compute-sanitizer, one process each, side by side.
sanitize() {
  local tool
  command -v compute-sanitizer >/dev/null || { echo "gpu: no compute-sanitizer, not run"; return; }
  for tool in memcheck racecheck initcheck synccheck; do
    {
      status=0
      LOSSGATE_GPU_ARRAYS_APART=1 compute-sanitizer --tool "$tool" --error-exitcode 9 "$bin/lossgate" gate \
        --impl kernel_gpu "${losses[@]/#/--loss=}" --dtype f32 --cases 20 --jobs 0 --out "$results/$tool" \
        >"$results/$tool.log" 2>&1 || status=$?
      ((status == 0)) || head -n 60 "$results/$tool.log" >&2
      echo "$tool $status" >"$results/$tool.status"
    } &
  done
  wait
  cat "$results"/*.status >"$results/sanitizer"
}

nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem --format=csv,noheader | head -n 1 |
  awk -F ', ' '{ print $1 ", driver " $2 ", clocks " $3 " and " $4 " at most" }' >"$results/device"
cp "$bin/commit" "$results" 2>/dev/null || git describe --always --dirty >"$results/commit"
echo "gpu: $(cat "$results/device")"
"$bin/impl_test" >"$results/impl_test.log" || { cat "$results/impl_test.log" >&2; exit 3; }
"$bin/fused_test" >"$results/fused_test.log" || { cat "$results/fused_test.log" >&2; exit 3; }
in_torch
gates "$results/first" "$cases"
gates "$results/second" "$cases"
sanitize
echo "gpu: benchmarks, after $SECONDS s"
"$bin/kernel_benchmark" --benchmark_filter=gpu --benchmark_min_time=0.1 --benchmark_repetitions=5 \
  --benchmark_report_aggregates_only=true --benchmark_out="$results/bench.json" --benchmark_out_format=json >/dev/null
python3 ci/gpu_page.py "$results" "${LOSSGATE_GPU_OUT:-ci/gpu}"
