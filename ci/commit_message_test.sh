#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ci/commit_message.sh accepts the form and refuses each way of missing it.
set -euo pipefail
cd "$(dirname "$0")"
message=$(mktemp)
trap 'rm -f "$message"' EXIT
failures=0

expect() {
  local wanted=$1 status=0
  echo "$2" >"$message"
  ./commit_message.sh "$message" 2>/dev/null || status=$?
  if ((status != wanted)); then
    echo "exit status $status instead of $wanted for: $2"
    failures=1
  fi
}

expect 0 'properties: add split_invariance'
expect 0 'impl/faulty: divide by the local token count'
expect 0 'reference: use compensated sums in GRPO'
expect 0 "ci: $(printf 'x%.0s' {1..68})"
expect 1 "ci: $(printf 'x%.0s' {1..69})"
expect 1 'add split_invariance'
expect 1 'misc: add split_invariance'
expect 1 'properties:add split_invariance'
expect 1 'properties: Add split_invariance'
expect 1 'properties: adds split_invariance'
expect 1 'properties: added split_invariance'
expect 1 'properties: add split_invariance.'
expect 1 ''
exit "$failures"
