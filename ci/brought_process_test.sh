#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The process in which a user's loss runs: what it keeps between calls, how often it is started, and how it may end; with
# the arguments of ci/brought_test.sh.
set -uo pipefail
source "$4/ci/bring.sh"

# What is wrong everywhere, and what is so after 30 calls or because of another case.
state() {
  bring kept.py:halved
  beside kept.py:halved_in_the_end
  beside kept.py:by_the_first_count
  gate 1 'red: ' --cases 60
  local function repro seed
  for function in halved_in_the_end by_the_first_count; do
    red "$function" reference_agreement 'cause +state between calls'
    grep -q 'where nothing was asked before it the case holds' \
      <(sed -n "/\"fingerprint\": .*|$function|/,/\"fault\"/p" run/run.json) || fail "no reason: $(said_of "$function")"
    said_of "$function" | sed -nE 's/^ +replay +lossgate replay ([^ ]+) .*/\1/p' |
      xargs grep -l 'holds where nothing was asked before' >/dev/null || fail "no case of $function says that"
  done
  red halved reference_agreement
  not_of halved 'state between calls'
  # A replay weighs a finding as its gate did, and another seed names it alike.
  names_of_halved >names.1
  repro=$(said_of halved | sed -nE 's/^ +replay +lossgate (replay .*--property reference_agreement)$/\1/p' | head -n 1)
  of halved 'grade +ordinary'
  # shellcheck disable=SC2086
  expect 1 'grade +ordinary' $repro
  bring kept.py:halved
  for seed in 2 3; do
    gate 1 'reference_agreement VIOLATED by halved' --cases 60 --seed "$seed" --property reference_agreement
    names_of_halved >"names.$seed"
  done
  [[ -s names.1 ]] && cmp names.1 names.2 && cmp names.1 names.3 || fail "a name hangs on the seed: $(cat names.*)"
}

names_of_halved() { grep -o '"fingerprint": *"[^"]*|halved|reference_agreement|[^"]*"' run/run.json | sort -u; }

# A gate has as many interpreters as workers, identify one: what they import takes longer than a small gate.
starts() {
  loaded() { [[ $(wc -l <starts.log) == "$1" ]] || fail "loaded $(wc -l <starts.log) times $2"; rm starts.log; }
  cat >counted.py <<'END'
from losses import sound; open("starts.log", "a").write("one\n")
def refuses(log_probs, old_log_probs, advantages, mask): raise ValueError("not today")
END
  bring counted.py:sound 'micro_batches = "token_weighted"' 'ranks = "token_weighted"'
  gate 0 'green: 0 red findings'
  loaded 1 'by one worker'
  gate 0 'green: 0 red findings' --cases 60 --jobs 2
  loaded 2 'by two workers'
  bring counted.py:refuses
  gate 1 'ValueError: not today' --cases 6
  loaded 1 'by one worker: no arithmetic explains what was not computed'
  expect 0 '= grpo\(token_mean\)' identify --quick counted.py:sound --python "$python" --out identified.toml
  loaded 1 'to be named, and to be asked what the file says'
}

containment() {
  # What is sent ahead and then not asked, since the contract rules it out, is nobody's fault.
  bring dies_where_tokens_are_gone '[subject.contract]' 'empty = "nan"'
  beside prints
  gate 0 'green: 0 red findings'
  # However hostile the case, it is nothing to tolerate.
  bring exits
  gate 1 'does_not_crash VIOLATED by exits' --cases 2 --fail-on ordinary
  grep -q 'exited with status 7' stdout || fail "how it ended is not said"
  expect 0 'exits violates does_not_crash: exited with status 7' \
    minimise "$(find run/findings -name '*.case' | head -n 1)" --config lossgate.toml --tries 4 --out small.case
  expect 1 'still fails' replay small.case --config lossgate.toml
  # Each crash takes an interpreter, so all are asked one case, of which little can be left out.
  mkdir one && cp "$source/ci/testdata/brought/one_token.case" one
  bring exits
  beside dies_where_tokens_are_gone
  beside segfaults
  beside closes
  beside raises
  beside seeds_anew
  beside not_a_tensor
  beside hangs 'seconds = 1'
  gate 1 'red: ' --cases 0 --corpus one
  local name
  for name in exits dies_where_tokens_are_gone segfaults closes; do red "$name" does_not_crash; done
  of segfaults 'killed by signal 11'
  grep -q 'Fatal Python error: Segmentation fault at losses.py:79' <(said_of segfaults | tr -s ' \n' ' ') || fail "not where: $(cat stdout)"
  red raises reference_agreement 'ValueError: odd counts are beyond me at losses.py'
  red seeds_anew inputs_not_mutated 'torch.initial_seed\(\) is 7 afterwards'
  red not_a_tensor reference_agreement 'cause +malformed result'
  red hangs does_not_hang
  grep -q 'it was at losses.py:86 in hangs; a call has seconds = 1' <(said_of hangs | tr -s ' \n' ' ') || fail "not where: $(cat stdout)"
  # Each try would take all the time that a call has.
  bring hangs 'seconds = 1'
  expect 2 'hangs does not return from it .*lossgate replay' minimise one/one_token.case --config lossgate.toml --out hang.case
  expect_no_orphan
}

"$test"
exit "$failures"
