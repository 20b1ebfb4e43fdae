#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the sample page again, and its picture where there is a chromium: a gate on the losses beside this
# script, with .venv's torch. The same lossgate gives the same page, but for times and the machine.
#   report/sample/make.sh        LOSSGATE_BUILD names the build folder (build/default)
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
build=$(realpath "${LOSSGATE_BUILD:-$root/build/default}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

status=0
PATH=$root/.venv/bin:$PATH "$build/bin/lossgate" gate --config lossgate.toml --corpus "$root/regressions" \
  --corpus "$root/corpora/seeds" --cases 60 --seed 1 --out "$scratch/sample" &>"$scratch/log" || status=$?
((status == 1)) || {  # it is there to be red
  cat "$scratch/log" >&2
  exit "$status"
}
cp "$scratch/sample/report.html" report.html
echo "sample: report.html, $(stat -c %s report.html) bytes"

chromium=$(command -v chromium || command -v google-chrome || true)
[[ -n $chromium ]] || exit 0
"$chromium" --headless --no-sandbox --hide-scrollbars --window-size=1440,1760 --screenshot="$PWD/report.png" \
  "file://$PWD/report.html" &>/dev/null
echo "sample: report.png, $(stat -c %s report.png) bytes"
