#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Losses and properties are written without a dtype, a roundoff or a tolerance: how an implementation
# computes reaches them through the reference's tracked bound alone. Comments, strings and tests may
# speak of them, and an option's default may be a small number.
#   ci/words.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

find reference/losses properties \( -name '*.h' -o -name '*.cpp' \) \
  ! -name '*_test.cpp' ! -name '*_benchmark.cpp' ! -name 'fake_*' ! -name 'given_*' -print0 | sort -z |
  xargs -0 awk '
    BEGIN {
      edge = "(^|[^A-Za-z0-9_.])"
      end = "([^A-Za-z0-9_]|$)"
      word = edge "(float|_Float16|__bf16|[fF](16|32|64)|bf16|[ar]tol|eps|epsilon|ulps?)" end
      part = "(roundoff|tolerance|_(EPSILON|MIN|MAX|DIG)" end ")"
      small = edge "([0-9.]+[eE]-[0-9]+|0[xX][0-9a-fA-F.]+[pP]-[0-9]+|0?\\.00[0-9]*)"
    }
    { code = $0 }
    {
      gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
      sub(/\/\/.*/, "", code)
      gsub(/\/\*[^*]*\*\//, "", code)
      if (code ~ word || code ~ part || (code ~ small && $0 !~ /_option\(/)) {
        print FILENAME ":" FNR ": names a dtype, a roundoff or a tolerance: " $0
        failures = 1
      }
    }
    END { exit failures }'
