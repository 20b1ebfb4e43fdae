#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Losses that a user brings, from outside, with a Python that has torch.
#   ci/brought_test.sh TEST LOSSGATE PYTHON SOURCE_DIR SCRATCH_DIR
set -uo pipefail
source "$4/ci/bring.sh"

verdicts() {
  bring sound 'micro_batches = "token_weighted"' 'ranks = "token_weighted"'
  gate 0 'green: 0 red findings' --cases 200
  bring unbounded
  gate 1 'finite_backward VIOLATED by unbounded'
  grep -Eq 'code +.*exp.* at losses.py:21: ratio = torch.exp' stdout || fail "not the guilty line: $(grep code stdout)"
  grep -Eq 'replay: .*replay run/findings/[0-9a-f]+.case --config lossgate.toml' run/summary.md ||
    fail "a summary's command works nowhere: $(grep replay run/summary.md)"
  local repro
  repro=$(sed -nE 's/^ +replay +lossgate (replay .*--property finite_backward)$/\1/p' stdout | head -n 1)
  # shellcheck disable=SC2086
  expect 1 'still fails' $repro
  expect 0 'those of lossgate.toml with --config lossgate.toml' replay "$(find run/findings -name '*.case' | head -n 1)"
  bring sound 'micro_batches = "mean"'
  gate 1 'split_invariance VIOLATED' --cases 100
  # A finding that a fixed function no longer shows is still known for what it was.
  local stored
  stored=$(find run/findings -name '*.case' | head -n 1)
  bring sound 'micro_batches = "token_weighted"' 'ranks = "token_weighted"'
  expect 0 'what it was stored for is mended, or comes and goes' replay "$stored" --config lossgate.toml
  grep -q 'violated by sound; made simple' stdout || fail "not what it was stored for: $(cat stdout)"
  # A micro-batch without a sequence, of which a stack of rows is made, is no call of a trainer.
  bring row_by_row 'micro_batches = "token_weighted"'
  gate 0 'green: 0 red findings' --cases 60
  # What a trainer rounds is not the function's fault.
  bring of_ranks_that_are_averaged 'micro_batches = "sum"' 'ranks = "mean"' 'dtypes = ["bf16", "f16"]' \
    '[subject.arithmetic]' 'compute = "f32"'
  gate 0 'green: 0 red findings' --cases 60
  bring in_f64 'micro_batches = "sum"' 'ranks = "sum"' 'dtypes = ["f32", "bf16"]' '[subject.arithmetic]' 'compute = "f64"'
  gate 0 'green: 0 red findings' --cases 60
  bring unbounded 'device = ["cpu", "cpu:0"]'
  gate 1 'VIOLATED by unbounded@cpu '
  grep -q 'on cpu:0 the same' stdout || fail "nothing of the other device: $(cat stdout)"
  bring sound 'most_cases = 5'
  gate 0 'green: 0 red findings' --cases 60
  grep -Eq '^  sound +f32 +5 ' stdout || fail "asked more than it may be: $(cat stdout)"
  expect 0 'the losses of lossgate.toml are asked' gate --corpus empty --cases 5 --jobs 1
  grep -Eq '^  sound +f32 +5 ' stdout || fail "not what the file here brings: $(cat stdout)"
}

# What is wrong everywhere, and what is so after 30 calls or because of another case.
state() {
  local function repro seed
  for function in halved halved_in_the_end by_the_first_count; do
    bring "$function"
    sed -i 's/losses.py:/kept.py:/' lossgate.toml
    rm -rf run
    gate 1 "reference_agreement VIOLATED by $function" --cases 60
    if [[ $function != halved ]]; then
      grep -Eq 'cause +state between calls' stdout || fail "no cause of $function: $(cat stdout)"
      grep -q 'where nothing was asked before it the case holds' run/run.json || fail "no reason: $(cat stdout)"
      grep -rlq 'holds where nothing was asked before' run/findings || fail 'a case says nothing of that'
      continue
    fi
    grep -q 'state between calls' stdout && fail "no state: $(cat stdout)"
    # A replay weighs a finding as its gate did, and another seed names it alike.
    repro=$(sed -nE 's/^ +replay +lossgate (replay .*--property reference_agreement)$/\1/p' stdout | head -n 1)
    grep -Eq 'grade +ordinary' stdout || fail "no grade: $(cat stdout)"
    # shellcheck disable=SC2086
    expect 1 'grade +ordinary' $repro
    for seed in 1 2 3; do
      rm -rf run
      gate 1 'reference_agreement VIOLATED by halved' --cases 60 --seed "$seed"
      grep -o '"fingerprint": *"[^"]*|reference_agreement|[^"]*"' run/run.json | sort -u >"names.$seed"
    done
    cmp names.1 names.2 && cmp names.1 names.3 || fail "a name hangs on the seed: $(cat names.*)"
  done
}

# A gate has as many interpreters as workers: what they import takes longer than a small gate.
starts() {
  cat >counted.py <<'END'
from losses import sound

with open("starts.log", "a") as log:
    log.write("one\n")


def refuses(log_probs, old_log_probs, advantages, mask):
    raise ValueError("not today")
END
  bring sound 'micro_batches = "token_weighted"' 'ranks = "token_weighted"'
  sed -i 's/losses.py:/counted.py:/' lossgate.toml
  gate 0 'green: 0 red findings'
  [[ $(wc -l <starts.log) == 1 ]] || fail "loaded so many times by one worker: $(wc -l <starts.log)"
  rm starts.log
  expect 0 'green: 0 red findings' gate --config lossgate.toml --corpus empty --cases 60 --jobs 2
  [[ $(wc -l <starts.log) == 2 ]] || fail "loaded so many times by two workers: $(wc -l <starts.log)"
  # Nothing is started to look for an arithmetic that would explain what was not computed.
  rm starts.log
  sed -i 's/:sound/:refuses/' lossgate.toml
  gate 1 'ValueError: not today' --cases 6
  [[ $(wc -l <starts.log) == 1 ]] || fail "loaded so many times to ask nothing: $(wc -l <starts.log)"
}

# FUNCTION LINES...: of per_sequence.py.
bring_per_sequence() {
  bring "$@"
  sed -i 's/losses.py/per_sequence.py/; s/token_mean/sequence_mean/' lossgate.toml
  [[ $1 != mean_over_tokens ]] || sed -i 's/sequence_mean/token_mean/' lossgate.toml
}

# FUNCTION LINES...: whose micro-batches and ranks are averaged.
bring_averaged() {
  bring_per_sequence "$1" 'micro_batches = "mean"' 'ranks = "mean"' "${@:2}"
}

contract() {
  bring over_all_rows 'micro_batches = "sum"' 'ranks = "sum"'
  sed -i 's/token_mean/sequence_mean/' lossgate.toml
  gate 1 'cause +empty row counted' --cases 60
  expect 0 'proposal: \[subject.contract\] empty_rows = "counted"$' check --quick
  grep -q 'no line' stdout && fail "half explained: $(cat stdout)"
  printf '[subject.contract]\nempty_rows = "counted"\n' >>lossgate.toml
  gate 0 'green: 0 red findings' --cases 60
  # A mean of means is right of micro-batches as large as each other, where it is one over sequences.
  bring_averaged mean_over_sequences
  gate 1 'split_invariance VIOLATED by mean_over_sequences' --cases 60
  printf '[subject.contract]\nuneven_parts = false\n' >>lossgate.toml
  gate 1 'split_invariance VIOLATED by mean_over_sequences' --cases 100  # ranks may still differ
  echo 'uneven_ranks = false' >>lossgate.toml
  gate 0 'green: 0 red findings' --cases 100
  expect 0 'micro-batches of a rank hold equally many sequences that count' check --quick
  grep -q '  ranks hold equally many sequences that count' stdout || fail "not of its ranks: $(cat stdout)"
  local function
  for function in mean_over_tokens mean_that_is_divided_twice; do
    bring_averaged "$function" '[subject.contract]' 'uneven_parts = false' 'uneven_ranks = false'
    gate 1 "split_invariance VIOLATED by $function" --cases 100
  done
  # Where ranks alone are averaged, micro-batches may be of any size; who adds up their means is wrong nevertheless.
  bring_per_sequence mean_over_its_rank 'micro_batches = "sum"' 'ranks = "mean"'
  gate 1 'split_invariance VIOLATED by mean_over_its_rank' --cases 100
  printf '[subject.contract]\nuneven_ranks = false\n' >>lossgate.toml
  gate 0 'green: 0 red findings' --cases 100
  sed -i 's/mean_over_its_rank/mean_over_sequences/' lossgate.toml
  gate 1 'split_invariance VIOLATED by mean_over_sequences' --cases 100
  bring of_seven_words
  sed -i 's/"grpo"/"log_prob"/; /^options/d; s/token_mean/sum/' lossgate.toml
  gate 1 'ValueError: there are seven words'
  echo 'axes = { vocab = 7 }' >>lossgate.toml
  gate 0 'green: 0 red findings' --cases 60
  expect 0 'axis vocab is 7' check --quick
}

# FUNCTION PATTERN LINES...: check proposes the line, which is then written, and the gate is asked.
proposes() {
  local function=$1 pattern=$2
  shift 2
  bring "$function" "$@"
  expect 0 "proposal: $pattern" check --quick
  grep -q 'right only if' stdout || fail "its price is not said"
}

proposals() {
  bring sound
  expect 0 'asked on 72 cases: nothing fails' check
  grep -Fq 'keeps more: [subject.contract] masked = "any"' stdout || fail "not what it keeps: $(cat stdout)"
  grep -Fq 'keeps more: [[subject]] micro_batches = "token_weighted"' stdout || fail "not its splits: $(cat stdout)"
  grep -FA1 'does not keep [[subject]] micro_batches = "mean"' stdout | grep -q 'fails split_invariance' ||
    fail "not what it would fail: $(cat stdout)"
  gate 0 'sound: relaxed by contract: 24; never asked: split_invariance \(micro_batches = "none"\)$'
  proposes refuses_empty '\[subject.contract\] empty = "error"$'
  grep -q 'it said: IndexError: no token counts' stdout || fail "not what it said: $(cat stdout)"
  grep -q 'no line' stdout && fail "half explained: $(cat stdout)"
  gate 1 'empty_is_zero VIOLATED'
  bring refuses_empty 'micro_batches = "token_weighted"' '[subject.contract]' 'empty = "error"'
  gate 0 'refuses_empty: relaxed by contract: [0-9]+; never asked: empty_is_zero$'
  grep -q '"relaxed_by_contract": [1-9]' run/run.json || fail "run.json does not count it"
  proposes divides_by_none '\[subject.contract\] empty = "nan"$'
  proposes other_order_each_time '\[subject.contract\] deterministic = false$'
  proposes trusts_padding '\[subject.contract\] masked = \{ default = "any", old_log_prob = "finite" \}$' '[subject.contract]' 'masked = "any"'
  proposes sound '\[\[subject\]\] micro_batches = "token_weighted"$' 'micro_batches = "mean"'
  bring_averaged mean_over_sequences
  expect 0 'proposal: \[subject.contract\] uneven_parts = false$' check --quick
  grep -q 'and: \[subject.contract\] uneven_ranks = false$' stdout || fail "its ranks may differ: $(cat stdout)"
  grep -q 'right only if micro-batches of a rank hold equally many sequences that count, and ranks do: it is an average of averages' stdout ||
    fail "its price is not said: $(cat stdout)"
  bring_per_sequence mean_over_its_rank 'micro_batches = "sum"' 'ranks = "mean"'
  expect 0 'proposal: \[subject.contract\] uneven_ranks = false$' check --quick
  grep -q 'uneven_parts' stdout && fail "its micro-batches may differ: $(cat stdout)"
  bring_per_sequence share_of_its_rank 'micro_batches = "sum"'
  expect 0 'proposal: \[subject.contract\] uneven_parts = false$' check --quick
  local function
  for function in mean_over_tokens mean_that_is_divided_twice; do
    bring_averaged "$function"
    expect 0 'split_invariance' check --quick
    grep -q 'uneven_' stdout && fail "a fault is explained away: $(cat stdout)"
  done
  bring_per_sequence mean_over_sequences 'micro_batches = "sum"' 'ranks = "mean"'
  expect 0 'split_invariance' check --quick
  grep -q 'uneven_' stdout && fail "a sum of means is explained away: $(cat stdout)"
  # One line for both.
  bring trusts_padding_twice
  sed -i 's/losses.py/near.py/' lossgate.toml
  expect 0 'proposal: \[subject.contract\] masked = \{ default = "finite", advantage = 0, log_prob = "ordinary" \}$' check --quick
  [[ $(grep -c 'proposal: .*masked' stdout) == 1 ]] || fail "lines that exclude each other: $(grep proposal stdout)"
  # Who refuses everything keeps nothing, and nothing is said of it.
  bring refuses_everything
  expect 0 'no line of the contract explains' check
  grep -q 'keeps more' stdout && fail "kept by none: $(cat stdout)"
  bring unbounded
  expect 0 'no line of the contract explains finite_forward .*overflow on a live path' check --quick
  bring exits
  expect 1 'asked on [0-9]+ cases: exited with status 7' check --quick
}

# Python multiplies in the fields' format unless a function says otherwise.
arithmetic() {
  bring sound 'dtypes = ["f32", "f64"]'
  expect 0 'arithmetic with f64 fields: worst error [0-9.]+ of its bound on [0-9]+ benign cases$' check --quick
  grep -q 'proposal' stdout && fail "a proposal without need: $(cat stdout)"
  bring sound '[subject.arithmetic]' 'compute = "f16"'
  expect 0 'computes in f16, with fewer digits than f32 fields: any operation may round to it$' check --quick
  bring widens 'dtypes = ["bf16"]'
  proposes widens '\[subject.arithmetic\] compute = "f32"$' 'dtypes = ["bf16"]'
  grep -q 'then the bounds are .* times as narrow' stdout || fail "its worth is not said: $(cat stdout)"
  bring widens 'dtypes = ["bf16"]' '[subject.arithmetic]' 'compute = "f32"'
  expect 0 'arithmetic with bf16 fields' check --quick
  grep -q 'proposal' stdout && fail "not content with its own proposal: $(cat stdout)"
  proposes rounds_its_fields '\[\[subject\]\] dtypes = \["bf16"\]$'
  proposes stores_few_bits '\[subject.arithmetic\] stages = \{ log_prob = "bf16" \}$'
  grep -q 'at most 2 fits' stdout || fail "the misfit is not said: $(cat stdout)"
  gate 1 'advice: stores_few_bits with f32 fields fits .subject.arithmetic. stages'
  # PyTorch's backward of a cast rounds the gradient, too.
  bring_as hands_on_few_bits cross_entropy 'label_smoothing = 0, z_loss = 0'
  printf '[subject.arithmetic]\nstages = { log_prob = "bf16" }\n' >>lossgate.toml
  gate 0 'green: 0 red findings' --cases 100
  bring off_by_a_thousandth
  expect 0 'no declaration of its arithmetic explains that$' check --quick
  grep -q 'proposal: .*arithmetic' stdout && fail "a fault is explained away: $(cat stdout)"
  gate 1 'reference_agreement VIOLATED'
  grep -q 'advice' stdout && fail "a fault is explained away: $(cat stdout)"
  # Libraries flush subnormals where nobody says that they are kept.
  bring flushes_subnormals
  sed -i 's/losses.py/flushing.py/' lossgate.toml
  gate 0 'green: 0 red findings' --cases 200
  printf '[subject.arithmetic]\nsubnormals = "kept"\n' >>lossgate.toml
  gate 1 'reference_agreement VIOLATED by flushes_subnormals' --cases 200
  # Rounding says nothing where it changes no field.
  bring scaled_by_a_millionth_less
  sed -i 's/^loss = .*/loss = "advantage_scaling"/; /^reductions/d; s/^options.*/options = { normalisation = "token_mean" }/' lossgate.toml
  expect 0 'no declaration of its arithmetic explains that$' check --quick
  grep -q 'proposal' stdout && fail "a fault is explained away: $(cat stdout)"
}

# In which order somebody adds shows in extreme cases alone.
orders() {
  bring joins_tiles '[subject.contract]' 'infinite_valid = false'
  sed -i 's/^loss = .*/loss = "cross_entropy"/; s/^options.*/options = { label_smoothing = 0, z_loss = 0 }/; s/losses.py/tiles.py/' lossgate.toml
  gate 1 '^advice: joins_tiles with f32 fields fits .subject.arithmetic. sum = \{ order = "online", width = [0-9]+ \}, right only if' --cases 60
  printf '[subject.arithmetic]\nsum = { order = "online", width = 5 }\n' >>lossgate.toml
  gate 0 'green: 0 red findings' --cases 60
  sed -i 's/joins_tiles/joins_tiles_of_what_it_caps/; /arithmetic/,$d' lossgate.toml
  gate 1 'reference_agreement VIOLATED by joins_tiles_of_what_it_caps' --cases 60
  grep '^advice' stdout && fail "a fault is explained away"
  # Lost terms of so wide a row would explain it, but not that narrower ones lose nothing.
  sed -i 's/joins_tiles_of_what_it_caps/off_where_wide/' lossgate.toml
  printf '[subject.arithmetic]\ncompute = "f32"\n' >>lossgate.toml
  gate 1 'cause +wrong beyond a length' --cases 100
  grep '^advice' stdout && fail "a fault is explained away"
}

# What was asked of whom is said, and nothing is green that nobody was asked.
asked() {
  bring sound 'micro_batches = "token_weighted"'
  cp lossgate.toml other.toml
  expect 2 "lossgate.toml and other.toml have a subject 'sound' of grpo each" gate --config lossgate.toml,other.toml
  bring unbounded
  gate 1 'finite_backward VIOLATED by unbounded'
  expect 3 'trouble: never asked: grpo/unbounded$' \
    fuzz --config other.toml,lossgate.toml --budget '1 cases' --jobs 1 --out small
  local count
  count=$(find run/findings -name '*.case' | wc -l)
  expect 2 '^lossgate: --corpus holds the cases in run/findings, which this run replaces' gate --config lossgate.toml --corpus run
  [[ $(find run/findings -name '*.case' | wc -l) == "$count" ]] || fail 'the corpus is gone'
  cp -r run/findings kept
  local one
  one=$(grep -L '^upstream: 0$' kept/*.case | head -n 1)
  bring unbounded
  sed -i 's/options = {/options = { clip_low = 0.123,/' lossgate.toml
  expect 3 'nothing was asked' replay "$one" --config lossgate.toml
  # Stored cases that nobody is asked any more do not pass for green.
  expect 2 '^lossgate: --corpus kept has nothing to ask: .*[0-9]+ stored cases? of grpo in kept fits? no subject: clip_low is fixed' \
    gate --config lossgate.toml --corpus kept --cases 2 --jobs 1 --out unfit
  cp -r kept mixed && sed 's/^option.clip_low: .*/option.clip_low: 0.123/' "$one" >mixed/fits.case
  "$lossgate" gate --config lossgate.toml --corpus mixed --cases 2 --jobs 1 --out unfit >stdout 2>stderr
  grep -Eq '^[0-9]+ stored cases? of grpo in mixed fits? no subject: clip_low is fixed$' stdout || fail "not said: $(cat stdout stderr)"
  grep -A4 '"unfit"' unfit/run.json | grep -q '"reason": "clip_low is fixed"' || fail 'the record does not count them'
  grep -Eq '<skipped message="[0-9]+ stored cases? of grpo in mixed' unfit/junit.xml || fail 'no skipped test tells of them'
  bring unbounded '[subject.contract]' 'masked = { default = "finite" }' 'longest = { tokens = 1, sequences = 1 }'
  expect 1 'outside the contract of unbounded: a gate does not ask it' replay "$(grep -l '^shape: .*tokens [2-9]' kept/*.case | head -n 1)" --config lossgate.toml
  mkdir wide && cp "$(grep -l '^shape: .*tokens [2-9]' kept/*.case | head -n 1)" wide
  expect 3 'grpo/unbounded answered no case: they are outside its contract' gate --config lossgate.toml --corpus wide --cases 0 --jobs 1
  bring not_written
  sed -i 's/losses.py/unanswering.py/' lossgate.toml
  expect 3 'grpo/not_written answered no case' fuzz --config lossgate.toml --budget 4s --jobs 1 --out campaign
  bring crashes_in_bf16 'dtypes = ["f32", "bf16"]'
  sed -i 's/losses.py/unanswering.py/' lossgate.toml
  expect 1 '^  ended: .*killed by signal 11' check --config lossgate.toml
}

containment() {
  # What is sent ahead and then not asked, since the contract rules it out, is nobody's fault.
  bring dies_where_tokens_are_gone '[subject.contract]' 'empty = "nan"'
  gate 0 'green: 0 red findings'
  bring dies_where_tokens_are_gone
  gate 1 'does_not_crash VIOLATED by dies_where_tokens_are_gone' --cases 6
  bring exits
  gate 1 'does_not_crash VIOLATED by exits' --cases 6
  grep -q 'exited with status 7' stdout || fail "how it ended is not said"
  # However hostile the case, it is nothing to tolerate.
  gate 1 'does_not_crash VIOLATED by exits' --cases 6 --fail-on ordinary
  expect 0 'exits violates does_not_crash: exited with status 7' \
    minimise "$(find run/findings -name '*.case' | head -n 1)" --config lossgate.toml --tries 8 --out small.case
  expect 1 'still fails' replay small.case --config lossgate.toml
  bring segfaults
  gate 1 'killed by signal 11' --cases 6
  grep -q 'Fatal Python error: Segmentation fault at losses.py:79' <(tr -s ' \n' ' ' <stdout) || fail "not where: $(cat stdout)"
  bring hangs 'seconds = 1'
  gate 1 'does_not_hang VIOLATED by hangs' --cases 6
  grep -q 'it was at losses.py:86 in hangs' <(tr -s ' \n' ' ' <stdout) || fail "not where: $(cat stdout)"
  # Each try would take all the time that a call has.
  expect 2 'hangs does not return from it .*lossgate replay' \
    minimise "$(find run/findings -name '*.case' | head -n 1)" --config lossgate.toml --out hang.case
  expect_no_orphan
  bring raises
  gate 1 'ValueError: odd counts are beyond me at losses.py'
  bring seeds_anew
  gate 1 'torch.initial_seed\(\) is 7 afterwards' --cases 6
  bring prints
  gate 0 'green: 0 red findings'
  bring closes
  gate 1 'does_not_crash VIOLATED by closes' --cases 6
  bring not_a_tensor
  gate 1 'cause +malformed result'
}

# What only a case as long as production's shows, and what it does not (rule E10).
length() {
  bring slow_where_long 'seconds = 1'
  gate 0 'green: 0 red findings' --cases 100
  grep -q 'skipped: long case: no answer' run/run.json || fail 'it is not said that a long case was skipped'
  bring large_where_long
  gate 0 'green: 0 red findings' --cases 100
  grep -q 'skipped: long case: MemoryError' run/run.json || fail 'it is not said that memory was short'
  bring wrong_then_slow_where_long 'seconds = 1'
  # Its first answer was wrong, so it is not slow alone.
  gate 1 'reference_agreement VIOLATED by wrong_then_slow_where_long' --cases 100
  bring counts_in_half
  gate 0 'green: 0 red findings' --cases 99
  gate 1 'cause +wrong beyond a length' --cases 100
  bring refuses_what_is_long
  gate 1 'at most 8192 tokens' --cases 100
  bring refuses_what_is_long '[subject.contract]' 'longest = { tokens = 8192 }'
  gate 0 'green: 0 red findings' --cases 100
}

# FUNCTION LOSS OPTIONS: a lossgate.toml for another loss.
bring_as() {
  bring "$1"
  sed -i "s/^loss = .*/loss = \"$2\"/; s/^options.*/options = { $3 }/" lossgate.toml
}

# A field that callers may have none of is asked of those that take it, and only of those.
optional_field() {
  local options='label_smoothing = 0, z_loss = 0'
  bring_as layer_without_bias linear_cross_entropy "$options"
  gate 0 'green: 0 red findings'
  expect 0 'bias does not reach it: taken as 0' check --quick
  bring_as of_layer linear_cross_entropy "$options"
  gate 0 'green: 0 red findings'
  bring_as layer_that_forgets_its_bias linear_cross_entropy "$options"
  gate 1 'reference_agreement VIOLATED'
}

operations() {
  bring_as group_advantages group_advantage 'baseline = "mean", scale = "std", epsilon = 1e-6, singleton = "zero"'
  sed -i '/^reductions/d' lossgate.toml
  gate 0 'green: 0 red findings'
  grep -q 'never asked' stdout && fail "no contract leaves out the splits that it has not: $(cat stdout)"
  expect 0 'computes group_advantage' check --quick
  grep -Eq 'reductions|splits' stdout && fail "what it has not is named: $(cat stdout)"
  sed -i 's/scale = "std"/scale = "population_std"/' lossgate.toml
  gate 1 'reference_agreement VIOLATED'
}

mistakes() {
  bring nothing
  gate 2 'losses.py'
  bring sound 'colour = 1'
  gate 2 "lossgate.toml:7:1: .*no key 'colour'"
  bring sound
  sed -i "s|$python|/no/such/python|" lossgate.toml
  gate 2 '/no/such/python'
  sed -i 's|losses.py|absent.py|' lossgate.toml
  gate 2 'lossgate.toml'
  printf '[[subject]\n' >lossgate.toml
  gate 2 'lossgate.toml:1:'
  expect 2 'lossgate.toml is there already' init grpo
  expect 0 'wrote new/deeper/lossgate.toml' init grpo --folder new/deeper
  grep -q 'lossgate check --config new/deeper/lossgate.toml; ' stdout || fail "what to do next: $(cat stdout)"
  sed -i "s|python3|$python|" new/deeper/lossgate.toml
  expect 1 'it answers none of them' check --quick --config new/deeper/lossgate.toml
  expect 3 'trouble: grpo/grpo answered no case: .*call your loss here' \
    gate --config new/deeper/lossgate.toml --corpus empty --cases 6 --jobs 1
  expect 2 'known' init grop
  expect 0 'wrote new/lossgate.toml' init value_clip --folder new  # a field of it is called return
  sed -i "s|python3|$python|" new/lossgate.toml
  expect 1 'computes value_clip' check --quick --config new/lossgate.toml
}

"$test"
exit "$failures"
