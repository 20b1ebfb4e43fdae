#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The budgets and names of files: lengths, one licence line first, no room for odds and ends.
#   ci/files.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
complaints=0

complain() {
  echo "$1: $2"
  complaints=1
}

# PATH, whose lines have been read, has at most so many.
limit() { ((${#lines[@]} <= $2)) || complain "$1" "${#lines[@]} lines, at most $2"; }

# No process is started for a file: there are more than a thousand.
while read -r file; do
  mapfile -t lines <"$file"
  case $file in
    ./CMakeLists.txt) limit "$file" 120 ;;
    */CMakeLists.txt) limit "$file" 40 ;;
    *.cmake) limit "$file" 150 ;;
    # Tests of one subject stay together.
    *_test.cpp | *_test.py | *_test.sh | */fake_*.h | */given_*.h | */given_*.py) limit "$file" 420 ;;
    ./reference/losses/*) limit "$file" 250 ;;
    */lossgate/watch.py) limit "$file" 350 ;;  # one file, which others copy
    *) limit "$file" 300 ;;
  esac
  [[ ! ${file##*/} =~ ^(.*_)?(utils?|common|helpers?|manager|detail|misc)(_.*)?\. ]] ||
    complain "$file" "a name that says nothing"
  licence=Apache-2.0
  [[ $file != */lossgate/watch.py ]] || licence=0BSD
  [[ "${lines[*]:0:2}" == *"SPDX-License-Identifier: $licence"* ]] ||
    complain "$file" "no licence in its first two lines"
done < <(find . \( -name build -o -name .venv -o -name .git -o -name run \) -prune -o -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.sh' -o -name '*.py' \
  -o -name '*.cmake' -o -name CMakeLists.txt \) -print | sort)
exit "$complaints"
