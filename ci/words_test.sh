#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No dtype, roundoff or tolerance in losses and properties; and one that is put in is seen.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
failures=0

./ci/words.sh || failures=1

expect() {
  local wanted=$1 status=0
  mkdir -p "$copy/reference/losses" "$copy/properties"
  echo "$2" >"$copy/properties/x.cpp"
  ./ci/words.sh "$copy" >/dev/null || status=1
  if ((status != wanted)); then
    echo "status $status instead of $wanted for: $2"
    failures=1
  fi
}

expect 1 'float x;'
expect 1 'if (dtype == Dtype::f32) return;'
expect 1 'case Dtype::bf16: return;'
expect 1 'const double u = unit_roundoff(dtype);'
expect 1 'std::numeric_limits<double>::epsilon()'
expect 1 'constexpr double kTolerance = 2; const double tolerance = 3;'
expect 1 'return error < 1e-6;'
expect 1 'return error < 0x1p-24;'
expect 1 'return error < 0.001;'
expect 1 'return FLT_EPSILON;'
expect 0 'return error <= bound.allowed;  // as tight in f32 as in bf16'
expect 0 'return "the dtype f32";'
expect 0 'real_option("denominator_epsilon", 1e-8, 0.0, 1.0);'
expect 0 'options.number("denominator_epsilon");'
expect 0 'Field{.name = "label", .dtype = Dtype::i64};'
expect 0 'case 16: return half_width * 0.5;'
exit "$failures"
