#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# objects_test.sh OBJECT...: what is compiled for AVX runs only behind the question whether the
# machine has it. So nothing of it is in a function that other objects define as well, since the
# linker keeps any one of them for all, nor in what runs before main.
set -euo pipefail

seen=0
for object in "$@"; do
  [[ $object == */lanes/avx* ]] || continue
  seen=$((seen + 1))
  weak=$(nm --defined-only "$object" | awk '$2 == "W" { print $3 }')
  objdump -d --no-show-raw-insn "$object" | awk -v object="$object" -v weak="$weak" '
    BEGIN { count = split(weak, names, "\n"); for (i = 1; i <= count; ++i) is_weak[names[i]] = 1 }
    /^[0-9a-f]+ <.*>:$/ {
      name = substr($2, 2, length($2) - 3)
      own = name ~ /[0-9]lanes_[0-9]+/
      shared = (is_weak[name] && !own) || name ~ /^(__cxx_global_var_init|_GLOBAL__)/
    }
    $1 ~ /:$/ && $2 ~ /^v/ && $2 !~ /^ver[rw]$/ {
      if (own) ++lanes
      if (shared && !told[name]++) { print object ": " name " is no lanes function, but has " $2; bad = 1 }
    }
    END {
      if (lanes < 1000) { print object ": " lanes + 0 " instructions of its set, was it compiled for it?"; bad = 1 }
      exit bad
    }'
done
[[ $seen == 2 ]] || { echo "objects of two instruction sets expected, found $seen"; exit 1; }
