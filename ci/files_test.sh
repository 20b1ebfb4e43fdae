#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files keep to their budgets and names; and one that does not is seen.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
failures=0

./ci/files.sh || failures=1

# STATUS PATH LINES [FIRST LINE]
expect() {
  local status=0
  mkdir -p "$copy/$(dirname "$2")"
  { echo "${4-// SPDX-License-Identifier: Apache-2.0}" && yes x | head -n "$(($3 - 1))"; } \
    >"$copy/$2" || true
  ./ci/files.sh "$copy" >/dev/null || status=1
  if ((status != $1)); then
    echo "status $status instead of $1 for $2 of $3 lines"
    failures=1
  fi
  rm -rf "${copy:?}"/*
}

expect 0 fuzz/x.cpp 300
expect 1 fuzz/x.cpp 301
expect 1 reference/losses/x.h 251
expect 1 CMakeLists.txt 121
expect 1 fuzz/CMakeLists.txt 41
expect 0 fuzz/detailed.cpp 3
expect 1 fuzz/string_util.cpp 3
expect 1 ci/common.h 3
expect 1 ci/x.h 3 '#pragma once'
expect 0 x/lossgate/watch.py 350 '# SPDX-License-Identifier: 0BSD'
expect 1 x/watch.py 3 '# SPDX-License-Identifier: 0BSD'
exit "$failures"
