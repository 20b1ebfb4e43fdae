#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the targets of fuzz/targets into $OUT, each with its corpus, dictionary and options, the way
# OSS-Fuzz calls it: CXX, CXXFLAGS, LIB_FUZZING_ENGINE, SRC and OUT come from the environment. Outside
# of Docker all of them have defaults:
#   OUT=out fuzz/oss_fuzz/build.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
[[ -d ../targets ]] || cd "$SRC/lossgate/fuzz/oss_fuzz"  # the image has a copy of this file in $SRC
here=$PWD
cd ../..
: "${OUT:=out}" "${CXX:=clang++-19}" "${LIB_FUZZING_ENGINE:=-fsanitize=fuzzer}"
: "${CXXFLAGS:=-O1 -gline-tables-only -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all}"
build=${WORK:-build}/fuzz-targets
mkdir -p "$OUT"

cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_CXX_FLAGS="$CXXFLAGS" \
  -DCMAKE_BUILD_TYPE=None -DLOSSGATE_TORCH=OFF -DLOSSGATE_TESTS=OFF -DLOSSGATE_FUZZ_TARGETS=ON \
  -DLOSSGATE_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" -DLOSSGATE_STATIC=ON
cmake --build "$build" --target fuzz_targets

find corpora/seeds regressions -name '*.case' -print0 | sort -z | xargs -0 "$build/bin/fuzz_seeds" "$build/seeds"
for target in benchmarks case frame journal safetensors; do
  cp "$build/bin/fuzz_$target" "$OUT"
  cp "$here/target.options" "$OUT/fuzz_$target.options"
  cp "$here/$target.dict" "$OUT/fuzz_$target.dict"
  find "$build/seeds/$target" -type f | LC_ALL=C sort | zip -q -j -X "$OUT/fuzz_${target}_seed_corpus.zip" -@
done
