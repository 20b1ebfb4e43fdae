#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The layers hold, and a forbidden include or link, put into a copy of the tree, is seen.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
failures=0

./ci/layers.sh || failures=1

fail() {
  echo "$1"
  failures=1
}

# FILE, a line that it may not hold
refuses() {
  mkdir -p "$copy"/{reference,impl,corpora,properties,fuzz,regressions,report,ci}
  mkdir -p "$copy/$(dirname "$1")"
  echo "$2" >"$copy/$1"
  ! ./ci/layers.sh "$copy" >/dev/null || fail "accepted in $1: $2"
  rm "$copy/$1"
}
accepts() {
  mkdir -p "$copy/$(dirname "$1")"
  echo "$2" >"$copy/$1"
  ./ci/layers.sh "$copy" || fail "refused in $1: $2"
  rm "$copy/$1"
}

refuses reference/spec/x.h '#include <Eigen/Core>'
refuses reference/spec/x.h '#include "reference/real.h"'
refuses reference/spec/x.h 'long double x;'
refuses reference/x.cpp '#include "impl/implementation.h"'
refuses reference/x.cpp '#include <ATen/ATen.h>'
refuses reference/losses/x_test.cpp '#include "impl/catalog.h"'
refuses impl/x.cpp '#include "reference/real.h"'
refuses impl/x_test.cpp '#include "reference/real.h"'
refuses impl/faulty/x.cpp '  #  include <torch/torch.h>'
refuses impl/torch/x.cpp '#include "reference/losses/catalog.h"'
refuses impl/cuda/x.cu '#include <ATen/ATen.h>'
refuses corpora/x.cpp '#include "reference/reference.h"'
refuses properties/x.cpp '#include "corpora/text_codec.h"'
refuses properties/x.cpp '#include "impl/catalog.h"'
refuses properties/x.h '#include <Eigen/Core>'
refuses fuzz/domains/x.cpp '#include "regressions/replay.h"'
refuses fuzz/x.cpp '#include <nlohmann/json.hpp>'
refuses regressions/x.cpp '#include "fuzz/draw_case.h"'
refuses report/x.cpp '#include "fuzz/draw_case.h"'
refuses report/x_test.cpp '#include "ci/gate.h"'
refuses ci/x.cpp '#include <torch/torch.h>'
accepts reference/x.cpp '#include <Eigen/Core>'
accepts properties/fake_x.h '#include "corpora/text_codec.h"'
accepts impl/torch/x.cpp '#include <ATen/ATen.h>'
accepts properties/x_test.cpp '#include "corpora/text_codec.h"'
accepts ci/x.cpp '#include "fuzz/draw_case.h"'

# A forbidden link, seen when the copy is configured.
rm -rf "$copy"
mkdir "$copy"
cp -r CMakeLists.txt CMakePresets.json reference impl corpora properties fuzz regressions report ci "$copy"
configure() { cmake --preset no-torch -S "$copy" -B "$copy/build" 2>&1; }
refuses_link() {
  sed "s/^  PUBLIC /  PUBLIC $2 /" "$1/CMakeLists.txt" >"$copy/$1/CMakeLists.txt"
  { configure || true; } | grep "$1 may not link $2" >/dev/null || fail "$1 may link $2"
  cp "$1/CMakeLists.txt" "$copy/$1"
}
configure >"$copy/log" || fail "the copy of the tree does not configure: $(cat "$copy/log")"
refuses_link impl lossgate_reference
refuses_link properties lossgate_ci
refuses_link regressions lossgate_fuzz
exit "$failures"
