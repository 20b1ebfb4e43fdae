#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Losses in a shared library, from outside.
#   ci/library_test.sh TEST LOSSGATE LIBRARY COMPILER SOURCE_DIR SCRATCH_DIR
set -uo pipefail
test=$1 lossgate=$2 library=$3 compiler=$4 source=$5 scratch=$6/$1
rm -rf "$scratch" && mkdir -p "$scratch/empty" && cd "$scratch"
cp "$library" given_losses.so
source "$source/ci/small_gate.sh"

# FUNCTION LINES...: a lossgate.toml for a function of given_losses.c.
bring() {
  cat >lossgate.toml <<END
[[subject]]
loss = "value_clip"
entry = "so:given_losses.so:$1"
reductions = ["token_mean"]
options = { value_clip = "none" }
outputs = ["per_token"]
END
  shift
  printf '%s\n' "$@" >>lossgate.toml
}

# FUNCTION PATTERN LINES...: breaks off on some cases; the run must go on, and keep a case.
broken() {
  local function=$1 pattern=$2
  shift 2
  bring "$function" "$@"
  gate 1 "$pattern" --cases 12 --out run
  grep -Eq "VIOLATED by $function" stdout || fail "no finding on $function: $(cat stdout)"
  compgen -G 'run/findings/*.case' >/dev/null || fail "no case is kept of $function"
  replays
  rm -rf run
}

# What the last gate says how to see its first finding again must show it.
replays() {
  local repro
  repro=$(sed -nE 's/^ +replay +lossgate (replay .*)$/\1/p' stdout | head -n 1)
  cp stdout gate.stdout
  # shellcheck disable=SC2086
  expect 1 'still fails' $repro
  mv gate.stdout stdout
}

verdicts() {
  bring sound 'micro_batches = "sum"' 'ranks = "sum"'
  gate 0 'green: 0 red findings' --cases 200
  expect 0 'value +<- field:value' check
  bring over_own_tokens 'micro_batches = "token_weighted"' 'ranks = "token_weighted"'
  gate 0 'green: 0 red findings' --cases 100
  bring over_own_tokens 'micro_batches = "sum"'
  gate 1 'split_invariance VIOLATED by over_own_tokens' --cases 100 --no-causes
  bring over_all_positions
  gate 1 'reference_agreement VIOLATED by over_all_positions'
  grep -Eq 'given_losses.c:[0-9]+' stdout || fail "where the function stands is not said: $(cat stdout)"
  bring half_the_gradient
  gate 1 'reference_agreement VIOLATED by half_the_gradient' --out run
  replays
  bring empty_divisor
  gate 1 'empty_is_zero VIOLATED by empty_divisor' --cases 200 --no-causes
  bring writes_inputs
  gate 1 'inputs_not_mutated VIOLATED by writes_inputs'
  bring rounds_upward
  gate 1 'the rounding mode is upward afterwards, and was not before'
  grep -q 'inputs_not_mutated VIOLATED by rounds_upward' stdout || fail "another property fails: $(cat stdout)"
  bring flushes
  gate 1 'flush to zero is on afterwards, and was not before' --out run
  replays
  bring loads_once
  gate 0 'green: 0 red findings'
  bring leaves_gradient
  gate 1 "place +gradient.value: 'gradient.value' is not written at"
  bring returns_garbage
  gate 1 'returns_garbage returned 700'
  bring refuses
  gate 1 'Refused: [0-9]+ is odd'
  bring does_not_compute
  gate 0 'green: 0 red findings'
  bring prints
  gate 0 'green: 0 red findings'
  bring forks
  gate 0 'green: 0 red findings'
}

containment() {
  broken segfaults 'does_not_crash VIOLATED'
  grep -q 'killed by signal 11' stdout || fail "how it ended is not said"
  broken aborts 'killed by signal 6'
  broken divides 'killed by signal 8'
  broken exits 'exited with status 7'
  gate 1 '256 of 256 cases' --cases 200  # 56 of them are long
  bring segfaults
  gate 1 'does_not_crash VIOLATED' --cases 12
  local crash
  crash=$(grep -l '^story: does_not_crash violated by segfaults; made simple' run/findings/*.case | head -n 1)
  [[ -n $crash ]] || fail 'the case of a crash is not made simple'
  expect 0 'segfaults violates does_not_crash: killed by signal 11' \
    minimise "$crash" --config lossgate.toml --out small.case
  grep -Eq '^shape: sequences 1, tokens [1-3]$' small.case || fail "not minimal: $(grep '^shape' small.case)"
  expect 1 'still fails' replay small.case --config lossgate.toml
  broken exits_well 'exited with status 0'
  broken closes 'does_not_crash VIOLATED'
  broken answers_garbage 'does_not_crash VIOLATED'
  broken overruns "wrote behind the end of 'gradient.value'"
  broken underruns "wrote before the beginning of 'gradient.value'"
  broken runs_away "it reached behind the end of 'gradient.value'"
  broken reads_away "it reached behind the end of 'value'"
  broken overflows_the_stack 'killed by signal 11'
  broken hangs 'does_not_hang VIOLATED' 'seconds = 0.5'
  broken spins 'does_not_hang VIOLATED' 'seconds = 0.5'
  broken leaves_a_child 'does_not_hang VIOLATED' 'seconds = 0.5'
  expect_no_orphan
  bring asks_for_memory
  gate 0 'green: 0 red findings'
  bring asks_for_memory 'megabytes = 500'
  gate 1 'Refused: no gigabyte is left'
}

mistakes() {
  bring sond
  gate 2 "given_losses.so has no function 'sond'; define it with LOSSGATE_LOSS"
  bring undeclared
  gate 2 "'undeclared' of given_losses.so is no loss that lossgate can call"
  bring newer
  gate 2 'compiled with version 2 of lossgate.h; this command has 1'
  bring misspells
  gate 2 "takes 'retrun', which value_clip does not have"
  bring sound
  sed -i 's|given_losses.so|absent.so|' lossgate.toml
  gate 2 'there is no file absent.so in '
  bring sound 'interpreter = "python3"'
  gate 2 "7:15: 'interpreter' is for a function in Python"
  bring sound
  sed -i '/reductions/d' lossgate.toml
  gate 2 'takes no reduction, so say which one it computes'
  bring half_the_gradient
  mv lossgate.toml half.toml
  bring sound
  gate 1 'VIOLATED by half_the_gradient' --config half.toml --impl half_the_gradient --no-causes
  gate 2 "unknown subject 'whole'" --config half.toml --impl whole
  expect 2 'are for functions in Python; .*: entry = "so:given_losses.so:sound"' identify given_losses.so:sound --out never.toml
  expect 2 'are for functions in Python' identify so:given_losses.so:sound --out never.toml
  bring asks_for_more
  gate 3 "asks for the array 'old_value'; it takes"
  bring asks_for_what_is_not
  gate 1 "it said last: asks_for_what_is_not asks for the array 'valeu'" --cases 2
}

# The first block of C and the first of TOML of the section, as users would copy them.
documentation() {
  awk '/^## A loss in a shared library/ { on = 1 } on && /^```c$/ { c = 1; next } on && /^```toml$/ { t = 1; next }
    /^```$/ { if (c || t) blocks++; c = t = 0; if (blocks == 2) exit } c { print > "ours.c" } t { print > "lossgate.toml" }' \
    "$source/impl/external/README.md"
  "$compiler" -x c -std=c99 -Wall -Wextra -Wpedantic -Werror -O2 -shared -fPIC -I "$source/impl/external/c" ours.c -o libours.so -lm ||
    fail "the example does not compile"
  gate 0 'green: 0 red findings' --cases 200
}

# C++ as users write it: what it throws is an error of the call.
throwing() {
  cat >ours.cpp <<'END'
#include <stdexcept>
#include <string>

#include "lossgate.h"

static int throws(const lossgate_call* call) {
  throw std::invalid_argument("mask is beyond " + std::string(call->array(call, "mask")->name));
}

LOSSGATE_LOSS(thrower, "value mask") { return throws(call); }
LOSSGATE_LOSS(odd_thrower, "value mask") {
  if (call->array(call, "value")->extents[0] > 1) throw 7;
  return throws(call);
}
END
  "$compiler" -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -O2 -shared -fPIC -I "$source/impl/external/c" ours.cpp -o given_losses.so ||
    fail "the header is no C++"
  bring thrower
  gate 1 'exception: mask is beyond mask'
  bring odd_thrower
  gate 1 'exception: something that is no std::exception'
}

# LibTorch's library, which takes most of a second to open, is opened for its own implementations alone.
unopened() {
  cat >torch.c <<'END'
#include <stdio.h>
__attribute__((constructor)) static void opened(void) { fclose(fopen("opened", "a")); }
END
  "$compiler" -x c -shared -fPIC torch.c -o torch.so || fail 'no library'
  export LOSSGATE_TORCH_LIBRARY=$PWD/torch.so
  bring half_the_gradient
  gate 1 'reference_agreement VIOLATED by half_the_gradient' --out run
  grep -q '"torch": "not opened: ' run/run.json || fail "the record says $(grep '"torch"' run/run.json)"
  local one
  one=$(find run/findings -name '*.case' | head -n 1)
  sed 's/^found_by: .*/&\nexpect: beyond_grid:reference_agreement/' "$one" >expecting.case
  expect 1 'still fails' replay expecting.case --config lossgate.toml
  expect 0 'wrote' minimise "$one" --config lossgate.toml --out small.case
  expect 1 'VIOLATED by half_the_gradient' fuzz --config lossgate.toml --budget '40 cases' --jobs 1 --out campaign
  [[ ! -e opened ]] || fail 'it was opened where only a library of our own is asked'
  expect 0 'LibTorch: .*torch.so has no lossgate_register' list implementations
  [[ -e opened ]] || fail 'it is never opened'
}

"$test"
exit "$failures"
