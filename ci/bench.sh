#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the benchmarks of a build folder, fits how their cost grows with each size, and compares them with an
# earlier run, by ratio: figures of one machine mean nothing on another, so an earlier run is one of the same
# machine.
#   ci/bench.sh OUT.json [BEFORE.json]
# LOSSGATE_BUILD names the folder (build/no-torch); LOSSGATE_BENCH_TIME the seconds for each (0.5).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?name the file to write}
build=${LOSSGATE_BUILD:-build/no-torch}

parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
for program in reference_benchmark kernel_benchmark gate_benchmark; do
  [[ -x $build/bin/$program ]] || { echo "bench: no $build/bin/$program, build it first" >&2; exit 2; }
  "$build/bin/$program" --benchmark_min_time="${LOSSGATE_BENCH_TIME:-0.5}" --benchmark_repetitions=3 \
    --benchmark_report_aggregates_only=true --benchmark_out="$parts/$program.json" \
    --benchmark_out_format=json >/dev/null
done
python3 ci/bench.py "$parts" "$out" ${2:+"$2"}
