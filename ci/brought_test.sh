#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Losses that a user brings, from outside, with a Python that has torch.
#   ci/brought_test.sh TEST LOSSGATE PYTHON SOURCE_DIR SCRATCH_DIR
set -uo pipefail
source "$4/ci/bring.sh"
# What ends its process on purpose, keeps something in it or counts its starts has one of its own.
case $test in verdicts | length | mistakes) ;; *) source "$source/ci/warm.sh" ;; esac

verdicts() {
  bring unbounded 'device = ["cpu", "cpu:0"]'
  beside sound 'micro_batches = "mean"'
  gate 1 'finite_backward VIOLATED by unbounded@cpu '
  red unbounded@cpu finite_backward 'code +.*exp.* at losses.py:21: ratio = torch.exp' 'on cpu:0 the same'
  red sound split_invariance
  grep -Eq 'replay: .*replay run/findings/[0-9a-f]+.case --config lossgate.toml' run/summary.md ||
    fail "a summary's command works nowhere: $(grep replay run/summary.md)"
  local repro stored
  repro=$(sed -nE 's/^ +replay +lossgate (replay .*--property finite_backward)$/\1/p' stdout | head -n 1)
  stored=$(said_of sound | sed -nE 's/^ +replay +lossgate replay ([^ ]+) .*/\1/p' | head -n 1)
  # shellcheck disable=SC2086
  expect 1 'still fails' $repro
  # Without --config those of lossgate.toml, as a gate does: lossgate's own would hold, and it would seem mended.
  expect 1 'still fails' replay "$stored" --impl sound
  grep -q 'the losses of lossgate.toml are asked' stderr || fail "whose verdict it is is not said: $(cat stderr)"
  expect 0 '^sound violates split_invariance' minimise "$stored" --impl sound --tries 1 --out small.case
  # A finding that a fixed function no longer shows is still known for what it was.
  bring sound 'micro_batches = "token_weighted"' 'ranks = "token_weighted"'
  expect 0 'what it was stored for is mended, or comes and goes' replay "$stored" --config lossgate.toml
  grep -q 'violated by sound; made simple' stdout || fail "not what it was stored for: $(cat stdout)"
  beside sound 'name = "seldom"' 'most_cases = 5'
  # A micro-batch without a sequence, of which a stack of rows is made, is no call of a trainer.
  beside row_by_row 'micro_batches = "token_weighted"' 'most_cases = 60'
  # What a trainer rounds is not the function's fault.
  beside of_ranks_that_are_averaged 'micro_batches = "sum"' 'ranks = "mean"' 'dtypes = ["bf16", "f16"]' 'most_cases = 60' \
    '[subject.arithmetic]' 'compute = "f32"'
  beside in_f64 'micro_batches = "sum"' 'ranks = "sum"' 'dtypes = ["f32", "bf16"]' 'most_cases = 60' \
    '[subject.arithmetic]' 'compute = "f64"'
  expect 0 'the losses of lossgate.toml are asked' gate --corpus empty --cases 200 --jobs 1
  grep -q 'green: 0 red findings' stdout || fail "an alarm: $(cat stdout)"
  grep -Eq '^  seldom +f32 +5 ' stdout || fail "asked more than it may be: $(cat stdout)"
}

# What overflows beyond 1.8e19, as it squares before it halves.
square=(near.py:halves_a_square 'loss = "value_clip"' 'options = { value_clip = "none" }')

# FUNCTION LINES...: of per_sequence.py.
beside_per_sequence() {
  beside "per_sequence.py:$1" 'reductions = ["sequence_mean"]' "${@:2}"
}

# FUNCTION LINES...: whose micro-batches and ranks are averaged.
beside_averaged() {
  beside_per_sequence "$1" 'micro_batches = "mean"' 'ranks = "mean"' "${@:2}"
}

contract() {
  local rows=(over_all_rows 'reductions = ["sequence_mean"]' 'micro_batches = "sum"' 'ranks = "sum"')
  local even=('[subject.contract]' 'uneven_parts = false' 'uneven_ranks = false')
  local words=(of_seven_words 'loss = "log_prob"' 'reductions = ["sum"]' '# no options')
  bring "${rows[@]}"
  beside_averaged mean_over_sequences "${even[@]}"
  beside "${words[@]}" 'axes = { vocab = 7 }'
  beside sound '[subject.contract]' 'largest = { default = 1e6, advantage = 3 }'
  expect 0 'computes' check --quick
  of over_all_rows 'proposal: \[subject.contract\] empty_rows = "counted"$'
  not_of over_all_rows 'no line'
  of mean_over_sequences 'micro-batches of a rank hold equally many sequences that count' '  ranks hold equally many sequences that count'
  of of_seven_words 'axis vocab is 7'
  of sound 'advantage is 3 at most where it counts' ' log_prob is 1000000 at most'
  bring "${rows[@]}"
  # A mean of means is right of micro-batches as large as each other, where it is one over sequences.
  beside_averaged mean_over_sequences
  beside_averaged mean_over_sequences 'name = "of_uneven_ranks"' '[subject.contract]' 'uneven_parts = false'
  beside per_sequence.py:mean_over_tokens 'micro_batches = "mean"' 'ranks = "mean"' "${even[@]}"
  beside_averaged mean_that_is_divided_twice "${even[@]}"
  # Where ranks alone are averaged, micro-batches may be of any size; who adds up their means is wrong nevertheless.
  local by_rank=('micro_batches = "sum"' 'ranks = "mean"')
  beside_per_sequence mean_over_its_rank "${by_rank[@]}"
  beside_per_sequence mean_over_sequences 'name = "sum_of_means"' "${by_rank[@]}" '[subject.contract]' 'uneven_ranks = false'
  beside refuses_empty
  beside "${words[@]}"
  gate 1 'red: ' --property empty_is_zero,reference_agreement,split_invariance
  red over_all_rows empty_is_zero 'cause +empty row counted'
  local name
  for name in mean_over_sequences of_uneven_ranks mean_over_tokens mean_that_is_divided_twice mean_over_its_rank sum_of_means; do
    red "$name" split_invariance
  done
  red refuses_empty empty_is_zero
  red of_seven_words reference_agreement 'ValueError: there are seven words'
  # What is said of each is not asked.
  bring "${rows[@]}" 'most_cases = 60' '[subject.contract]' 'empty_rows = "counted"'
  beside_averaged mean_over_sequences "${even[@]}"
  beside_per_sequence mean_over_its_rank "${by_rank[@]}" '[subject.contract]' 'uneven_ranks = false'
  beside "${words[@]}" 'axes = { vocab = 7 }' 'most_cases = 60'
  beside refuses_empty 'micro_batches = "token_weighted"' 'most_cases = 24' '[subject.contract]' 'empty = "error"'
  beside sound 'most_cases = 24'
  beside "${square[@]}" 'most_cases = 60' '[subject.contract]' 'largest = 1e18'
  gate 0 'green: 0 red findings' --cases 100
  grep -Eq 'refuses_empty: relaxed by contract: [1-9][0-9]*; never asked: empty_is_zero$' stdout || fail "not what it is not asked: $(cat stdout)"
  grep -Eq 'sound: relaxed by contract: 24; never asked: split_invariance \(micro_batches = "none"\)$' stdout || fail "not what it is not asked: $(cat stdout)"
  grep -q '"relaxed_by_contract": [1-9]' <(grep -A9 '"name": "refuses_empty"' run/run.json) || fail "run.json does not count it"
}

# NAME PATTERN: the last check proposes the line, and says what it takes to be right.
proposes() {
  of "$1" "proposal: $2" 'right only if'
}

proposals() {
  # What is known of infinities and of bf16 is promised, and not tried.
  bring sound 'dtypes = ["f32", "bf16"]' '[subject.contract]' 'infinite_valid = true'
  # Who refuses everything keeps nothing, and nothing is said of it but why.
  beside refuses_everything
  beside not_a_tensor
  expect 1 'computes' check
  of sound 'asked on 72 cases: nothing fails' 'keeps more: \[subject.contract\] masked = "any"' \
    'keeps more: \[subject.contract\] autocast = true' \
    'keeps more: \[\[subject\]\] micro_batches = "token_weighted"'
  grep -q 'fails split_invariance' <(said_of sound | grep -FA1 'does not keep [[subject]] micro_batches = "mean"') ||
    fail "not what it would fail: $(cat stdout)"
  of refuses_everything 'it answers none of them: refused a legal input: RuntimeError: expected scalar type Double' \
    'no line of the contract explains'
  of not_a_tensor 'asked on 72 cases: it answers none of them: [^ ]'
  not_of refuses_everything 'keeps more'
  bring exits
  expect 1 'asked on [0-9]+ cases: exited with status 7' check --quick
  bring refuses_empty
  beside divides_by_none
  beside other_order_each_time
  beside trusts_padding '[subject.contract]' 'masked = "any"'
  beside sound 'micro_batches = "mean"'
  beside_averaged mean_over_sequences
  local by_rank=('micro_batches = "sum"' 'ranks = "mean"')
  beside_per_sequence mean_over_its_rank "${by_rank[@]}"
  beside_per_sequence share_of_its_rank 'micro_batches = "sum"'
  beside per_sequence.py:mean_over_tokens 'micro_batches = "mean"' 'ranks = "mean"'
  beside_averaged mean_that_is_divided_twice
  beside_per_sequence mean_over_sequences 'name = "sum_of_means"' "${by_rank[@]}"
  beside near.py:trusts_padding_twice
  beside "${square[@]}"
  beside unbounded
  expect 0 'computes' check --quick
  proposes refuses_empty '\[subject.contract\] empty = "error"$'
  of refuses_empty 'it said: IndexError: no token counts'
  not_of refuses_empty 'no line'
  proposes halves_a_square '\[subject.contract\] largest = \{ return = 1e\+18 \}$'
  proposes divides_by_none '\[subject.contract\] empty = "nan"$'
  proposes other_order_each_time '\[subject.contract\] deterministic = false$'
  proposes trusts_padding '\[subject.contract\] masked = \{ default = "any", old_log_prob = "finite" \}$'
  proposes sound '\[\[subject\]\] micro_batches = "token_weighted"$'
  # One word for all of its splits, which are asked all the same.
  of sound 'then right: split_invariance \('
  [ "$(said_of sound | grep -c 'proposal: .*micro_batches')" = 1 ] || fail "several words: $(said_of sound)"
  proposes mean_over_sequences '\[subject.contract\] uneven_parts = false$'
  of mean_over_sequences 'and: \[subject.contract\] uneven_ranks = false$' \
    'right only if micro-batches of a rank hold equally many sequences that count, and ranks do: it is an average of averages'
  proposes mean_over_its_rank '\[subject.contract\] uneven_ranks = false$'
  not_of mean_over_its_rank 'uneven_parts'
  proposes share_of_its_rank '\[subject.contract\] uneven_parts = false$'
  # A fault is not explained away, nor is a sum of means.
  local name
  for name in mean_over_tokens mean_that_is_divided_twice sum_of_means; do
    of "$name" 'split_invariance'
    not_of "$name" 'uneven_'
  done
  # One line for both.
  of trusts_padding_twice 'proposal: \[subject.contract\] masked = \{ default = "finite", advantage = 0, log_prob = "ordinary" \}$'
  [[ $(said_of trusts_padding_twice | grep -c 'proposal: .*masked') == 1 ]] || fail "lines that exclude each other: $(grep proposal stdout)"
  # How far off it is tells what lay behind the mask, of no arithmetic.
  not_of trusts_padding_twice 'no declaration of its arithmetic'
  of unbounded 'no line of the contract explains finite_forward .*overflow on a live path'
}

# Python multiplies in the fields' format unless a function says otherwise.
arithmetic() {
  bring sound 'dtypes = ["f32", "f64"]'
  beside sound 'name = "in_f16"' '[subject.arithmetic]' 'compute = "f16"'
  beside widens 'dtypes = ["bf16"]'
  beside widens 'name = "says_that_it_widens"' 'dtypes = ["bf16"]' '[subject.arithmetic]' 'compute = "f32"'
  beside rounds_its_fields
  beside stores_few_bits
  beside off_by_a_thousandth
  # Rounding says nothing where it changes no field.
  beside scaled_by_a_millionth_less 'loss = "advantage_scaling"' '# no reductions' 'options = { normalisation = "token_mean" }'
  # Of the narrow bounds that benign cases fit, hostile ones are the test.
  beside per_sequence.py:rounds_each_step 'loss = "dpo"' 'dtypes = ["bf16"]' 'reductions = ["sum"]' 'options = { loss_type = "sigmoid" }'
  expect 0 'computes' check --quick
  of sound 'arithmetic with f64 fields: worst error [0-9.]+ of its bound on [0-9]+ benign cases$'
  not_of sound 'proposal'
  of in_f16 'computes in f16, with fewer digits than f32 fields: any operation may round to it$'
  proposes widens '\[subject.arithmetic\] compute = "f32"$'
  of widens 'then the bounds are .* times as narrow'
  of says_that_it_widens 'arithmetic with bf16 fields'
  not_of says_that_it_widens 'proposal'
  proposes rounds_its_fields '\[\[subject\]\] dtypes = \["bf16"\]$'
  proposes stores_few_bits '\[subject.arithmetic\] stages = \{ log_prob = "bf16" \}$'
  of stores_few_bits 'at most 2 fits'
  of off_by_a_thousandth 'no declaration of its arithmetic explains that$'
  not_of off_by_a_thousandth 'proposal: .*arithmetic'
  of scaled_by_a_millionth_less 'no declaration of its arithmetic explains that$'
  not_of scaled_by_a_millionth_less 'proposal'
  not_of rounds_each_step 'proposal'
  of rounds_each_step 'benign cases fit \[\[subject\]\] arithmetic = .*, hostile ones do not: then it fails reference_agreement'
  # PyTorch's backward of a cast rounds the gradient, too.
  bring hands_on_few_bits 'loss = "cross_entropy"' 'options = { label_smoothing = 0, z_loss = 0 }' \
    '[subject.arithmetic]' 'stages = { log_prob = "bf16" }'
  beside stores_few_bits 'most_cases = 24'
  beside off_by_a_thousandth 'most_cases = 24'
  gate 1 'advice: stores_few_bits with f32 fields fits .subject.arithmetic. stages' --cases 100
  green hands_on_few_bits
  red stores_few_bits reference_agreement
  red off_by_a_thousandth reference_agreement
  not_of off_by_a_thousandth '^advice'
  # Libraries flush subnormals where nobody says that they are kept.
  bring flushing.py:flushes_subnormals
  beside flushing.py:flushes_subnormals 'name = "keeps_subnormals"' '[subject.arithmetic]' 'subnormals = "kept"'
  gate 1 'reference_agreement VIOLATED by keeps_subnormals' --cases 400
  green flushes_subnormals
  red keeps_subnormals reference_agreement
}

# In which order somebody adds shows in extreme cases alone.
orders() {
  local layer=('loss = "cross_entropy"' 'options = { label_smoothing = 0, z_loss = 0 }')
  local finite=('[subject.contract]' 'infinite_valid = false')
  bring tiles.py:joins_tiles "${layer[@]}" 'most_cases = 60' "${finite[@]}"
  beside tiles.py:joins_tiles "${layer[@]}" 'name = "says_how_it_joins"' 'most_cases = 60' "${finite[@]}" \
    '[subject.arithmetic]' 'sum = { order = "online", width = 5 }'
  beside tiles.py:joins_tiles_of_what_it_caps "${layer[@]}" 'most_cases = 60' "${finite[@]}"
  # Lost terms of so wide a row would explain it, but not that narrower ones lose nothing.
  beside tiles.py:off_where_wide "${layer[@]}" "${finite[@]}" '[subject.arithmetic]' 'compute = "f32"'
  # The first case that is wrong might be explained so, the worst one is not.
  beside tiles.py:whitened_in_one_pass 'loss = "whitening"' '# no reductions' '# no options' 'dtypes = ["f32"]'
  # The product of the exponent is rounded, by which exp is off the more the larger it is.
  beside tiles.py:weighs_by_exp2
  beside tiles.py:weighs_by_exp2 'name = "says_by_how_much"' '[subject.arithmetic]' 'exp_slope = 1'
  gate 1 '^advice: joins_tiles with f32 fields fits .subject.arithmetic. sum = \{ order = "online", width = [0-9]+ \}, right only if' --cases 100
  red joins_tiles reference_agreement
  green says_how_it_joins says_by_how_much
  red weighs_by_exp2 reference_agreement
  grep -Eq '^advice: weighs_by_exp2 with f32 fields fits .subject.arithmetic. exp_slope = 1, right only if' stdout ||
    fail "its slope is not told: $(grep ^advice stdout)"
  red joins_tiles_of_what_it_caps reference_agreement
  red off_where_wide reference_agreement 'cause +wrong beyond a length'
  red whitened_in_one_pass reference_agreement 'cause +cancellation'
  grep '^advice' stdout | grep -Ev '^advice: (joins_tiles|weighs_by_exp2) with' && fail "a fault is explained away"
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
  expect 3 '^unbounded was not asked: clip_low is fixed$' minimise "$one" --config lossgate.toml --out unasked.case
  expect 3 '^nothing was asked$' share "$one" --config lossgate.toml --out unasked.case
  expect 2 'none of the implementations asked for computes dpo' \
    minimise "$source/corpora/seeds/dpo/far-above.case" --config lossgate.toml --out unasked.case
  expect 2 'no test is written: nothing was asked' replay "$one" --config lossgate.toml --emit-test unasked.case
  [[ ! -e unasked.case ]] || fail 'a file was written of what nobody was asked'
  # Those that come with lossgate are asked under what it fixes.
  expect 1 'finite_backward VIOLATED' gate --config lossgate.toml --corpus "$source/corpora/seeds" --cases 0 --jobs 1 --out ours
  grep -q '^option.clip_low: 0.123$' ours/findings/*.case || fail 'its options are those of the stored case'
  # Stored cases that nobody is asked any more do not pass for green.
  expect 2 '^lossgate: --corpus kept has nothing to ask: .*[0-9]+ stored cases? of grpo in kept fits? no subject: clip_low is fixed' \
    gate --config lossgate.toml --corpus kept --cases 2 --jobs 1 --out unfit
  cp -r kept mixed && sed 's/^option.clip_low: .*/option.clip_low: 0.123/' "$one" >mixed/fits.case
  "$lossgate" gate --config lossgate.toml --corpus mixed --cases 2 --jobs 1 --out unfit >stdout 2>stderr
  grep -Eq '^[0-9]+ stored cases? of grpo in mixed fits? no subject: clip_low is fixed$' stdout || fail "not said: $(cat stdout stderr)"
  grep -q '"reason": "clip_low is fixed"' <(grep -A4 '"unfit"' unfit/run.json) || fail 'the record does not count them'
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

# What only a case as long as production's shows, and what it does not (rule E10).
length() {
  bring slow_where_long 'seconds = 1'
  beside large_where_long
  beside counts_in_half 'name = "counts_few_in_half"' 'most_cases = 99'
  beside refuses_what_is_long '[subject.contract]' 'longest = { tokens = 8192 }'
  gate 0 'green: 0 red findings' --cases 100
  grep -q 'skipped: long case: no answer' run/run.json || fail 'it is not said that a long case was skipped'
  grep -q 'skipped: long case: MemoryError' run/run.json || fail 'it is not said that memory was short'
  # Its first answer was wrong, so it is not slow alone.
  bring wrong_then_slow_where_long 'seconds = 1'
  beside counts_in_half
  beside refuses_what_is_long
  gate 1 'red: ' --cases 100
  red wrong_then_slow_where_long reference_agreement
  red counts_in_half reference_agreement 'cause +wrong beyond a length'
  red refuses_what_is_long reference_agreement 'at most 8192 tokens'
}

# A field that callers may have none of is asked of those that take it, and only of those.
optional_field() {
  local layer=('loss = "linear_cross_entropy"' 'options = { label_smoothing = 0, z_loss = 0 }')
  bring layer_without_bias "${layer[@]}"
  expect 0 'bias does not reach it: taken as 0' check --quick
  beside of_layer "${layer[@]}"
  beside layer_that_forgets_its_bias "${layer[@]}"
  gate 1 'reference_agreement VIOLATED'
  green layer_without_bias of_layer
  red layer_that_forgets_its_bias reference_agreement
  # What None is the default of is left out, too, of a function that answers then.
  cp "$source/ci/testdata/brought/on_policy.py" .
  bring on_policy.py:of_any_step
  beside on_policy.py:of_no_step
  beside on_policy.py:of_no_step 'name = "given_everything"' '[subject.contract]' 'omitted_fields = false'
  beside on_policy.py:of_later_steps
  expect 0 'computes' check --quick
  of of_no_step-without-old_log_prob 'callers leave out old_log_prob; where none does: \[subject.contract\] omitted_fields = false'
  gate 1 'reference_agreement VIOLATED'
  green of_any_step of_any_step-without-old_log_prob of_no_step given_everything of_later_steps
  red of_no_step-without-old_log_prob reference_agreement
  grep -Eq '(given_everything|of_later_steps)-without' stdout && fail "it is asked what nobody asks it: $(cat stdout)"
  local stored
  stored=$(said_of of_no_step-without-old_log_prob | sed -nE 's/^ +replay +lossgate (replay .*)/\1/p' | head -n 1)
  # shellcheck disable=SC2086
  expect 1 'still fails' $stored
}

operations() {
  bring group_advantages 'loss = "group_advantage"' '# no reductions' \
    'options = { baseline = "mean", scale = "std", epsilon = 1e-6, singleton = "zero" }'
  expect 0 'computes group_advantage' check --quick
  grep -Eq 'reductions|splits' stdout && fail "what it has not is named: $(cat stdout)"
  gate 0 'green: 0 red findings'
  grep -q 'never asked' stdout && fail "no contract leaves out the splits that it has not: $(cat stdout)"
  sed -i 's/scale = "std"/scale = "population_std"/' lossgate.toml
  gate 1 'reference_agreement VIOLATED' --property reference_agreement --no-causes
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
