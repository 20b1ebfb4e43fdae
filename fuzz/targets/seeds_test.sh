#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each stand-alone target reads each of its seeds: they link in an ordinary build, too, and a seed
# breaks none.
#   seeds_test.sh FOLDER_OF_PROGRAMS SOURCE_DIR
set -euo pipefail
programs=$1
source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

find "$source/corpora/seeds" "$source/regressions" -name '*.case' -print0 | sort -z |
  xargs -0 "$programs/fuzz_seeds" "$folder"
for target in benchmarks case frame journal safetensors; do
  seeds=("$folder/$target"/*)
  [[ -f ${seeds[0]} ]] || { echo "fuzz_$target has no seeds" >&2; exit 1; }
  "$programs/fuzz_$target" "${seeds[@]}" > "$folder/said" 2>&1 || { cat "$folder/said" >&2; exit 1; }
  read=$(grep -c '^Executed ' "$folder/said")
  [[ $read == "${#seeds[@]}" ]] || { echo "fuzz_$target read $read of ${#seeds[@]} seeds" >&2; exit 1; }
done
