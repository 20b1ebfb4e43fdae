#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which loss a function computes, from outside, with a Python that has torch.
#   ci/identify_test.sh TEST LOSSGATE PYTHON SOURCE_DIR SCRATCH_DIR
set -uo pipefail
test=$1 lossgate=$2 python=$3 source=$4 scratch=$5/$1
rm -rf "$scratch" && mkdir -p "$scratch/empty" && cd "$scratch"
cp "$source"/ci/testdata/brought/{losses,near,parameters,per_sequence}.py .
source "$source/ci/expect.sh"
source "$source/ci/warm.sh"

found() {
  expect 0 '= grpo\(token_mean\)' identify losses.py:unbounded --python "$python" --out found.toml
  grep -q 'kl_penalty = 0' found.toml || fail "$(cat found.toml)"
  # It asks all that the function keeps, and says what it does not.
  grep -q '  keeps dtypes = \["f32", "bf16"\]$' stdout || fail "not what it keeps: $(cat stdout)"
  grep -q '^dtypes = \["f32", "bf16"\]  # kept on 288 cases' found.toml || fail "not asked: $(cat found.toml)"
  grep -q '^autocast = true  # kept on 72 cases' found.toml || fail "not asked under autocast: $(cat found.toml)"
  grep -q 'none (not asked); it is right under "token_weighted", not under "sum", "mean"$' found.toml ||
    fail "its splits are not said: $(cat found.toml)"
  # Where one word is right of any parts, nobody need keep to some.
  grep -q 'uneven_' stdout found.toml && fail "asked of callers in vain: $(cat found.toml)"
  # With fields of 16 bits each operation rounds to these.
  grep -Eq 'does not keep arithmetic = \{ compute = "f32" \}: reference_agreement \([0-9]+ cases: narrow arithmetic\)' stdout ||
    fail "not what it does not keep: $(cat stdout)"
  grep -q '^# arithmetic = { compute = "f32" }  # not kept: reference_agreement' found.toml ||
    fail "not said: $(cat found.toml)"
  expect 2 'there is no folder .*/nowhere$' identify losses.py:unbounded --python "$python" --out nowhere/found.toml
  expect 2 'found.toml is there already' identify losses.py:unbounded --python "$python" --out found.toml
  expect 1 '= grpo\(token_mean\) x valid / all positions' identify losses.py:over_all_positions --python "$python" --out other.toml
  [[ -e other.toml ]] && fail "a guess was written down"
  expect 0 'log_probs +<- field:log_prob' check --quick --config found.toml
  expect 1 'VIOLATED by unbounded' gate --config found.toml --corpus empty --cases 24 --jobs 1 --property finite_backward --no-causes
  # In other ways than its parameters say, and with numbers that it is not told.
  expect 0 '= grpo\(token_mean\)' identify --quick near.py:one_advantage_a_sequence --python "$python" --out rows.toml
  grep -Fq 'arguments = { advantages = "field:advantage as rows" }' rows.toml || fail "$(cat rows.toml)"
  grep -q 'clip_low = 0.17, clip_high = 0.31,' rows.toml || fail "$(cat rows.toml)"
  expect 0 'advantages +<- field:advantage as rows' check --quick --config rows.toml
  # A file that lies elsewhere says where the function is.
  mkdir -p elsewhere
  expect 0 '= grpo\(token_mean, sequence_mean\)' \
    identify --quick near.py:one_epsilon --python "$python" --out elsewhere/means.toml
  grep -q 'wrote elsewhere/means.toml' stdout || fail "not what it wrote: $(cat stdout)"
  grep -q '^folder = "\.\."$' elsewhere/means.toml || fail "not where it is: $(cat elsewhere/means.toml)"
  grep -q 'clip_low' elsewhere/means.toml && fail "a value is left of what it is told: $(cat elsewhere/means.toml)"
  grep -q 'empty_rows = "counted"' elsewhere/means.toml || fail "$(cat elsewhere/means.toml)"
  expect 0 'means' check --quick --config elsewhere/means.toml
  expect 0 'returns temperature\^2 times the formula$' identify near.py:scaled_distillation --python "$python" --out kd.toml
  grep -q '^scale = "temperature^2"' kd.toml || fail "its scale is not said: $(cat kd.toml)"
  grep -q '^options = .*temperature' kd.toml && fail "a gate would not ask it: $(cat kd.toml)"
  grep -q 'int32_labels' kd.toml || fail "its labels are not tried: $(cat kd.toml)"
}

# It is the loss, and wrong: the file is written, and a gate sees what it says.
faults() {
  expect 1 '^wrong: clip_low and clip_high are exchanged: it takes cliprange_low for clip_high and cliprange_high for clip_low; whoever leaves them at its own defaults of 0.2 and 0.28 gets another formula$' \
    identify --quick near.py:clips_exchanged --python "$python" --out exchanged.toml
  grep -q '^# wrong: clip_low and clip_high' exchanged.toml || fail "not said: $(cat exchanged.toml)"
  grep -q 'clip_low = ' exchanged.toml && fail "a gate would not ask it: $(cat exchanged.toml)"
  disagrees exchanged.toml 48 '' --no-causes
  # A parameter that is right at some values, and nothing says that it is for those alone.
  expect 1 '^wrong: beta is a parameter, and any other value than 0, 0.5 or 1 is another formula$' \
    identify --quick parameters.py:mixture_swapped --loss jsd --python "$python" --out mixture.toml
  grep -q '^  right only where beta is 0, 0.5 or 1$' stdout || fail "not where it is right: $(cat stdout)"
  grep -q '^wrote mixture.toml; next: lossgate gate --config mixture.toml, which is red$' stdout || fail "$(tail -1 stdout)"
  grep -q '^# options = { beta = 0.5, .* }  # right only if nobody calls it otherwise$' mixture.toml || fail "$(cat mixture.toml)"
  grep -q '^options = .*beta = ' mixture.toml && fail "a gate would not ask it: $(cat mixture.toml)"
  disagrees mixture.toml 48 '' --no-causes
  expect 1 '^wrong: whoever leaves temperature at its own default of 2 gets another formula$' \
    identify --quick parameters.py:student_alone_scaled --python "$python" --out student.toml
  disagrees student.toml 48 '' --no-causes
  # No number where nothing counts, which its trainer may drop: micro-batches are judged beside that.
  expect 0 'proposal: \[subject.contract\] empty = "nan"$' \
    identify losses.py:divides_by_none --python "$python" --out none.toml
  grep -q '^# empty = "nan"  # right only if the trainer drops the NaN' none.toml || fail "$(cat none.toml)"
  grep -q 'it is right under "token_weighted", not under "sum", "mean", where empty = "nan" stands below$' none.toml ||
    fail "its splits are not said: $(cat none.toml)"
  # What huge numbers behind the mask make of a guarded divisor is not what an empty batch gives.
  expect 0 'masked_positions_inert' identify --quick near.py:guarded_product --python "$python" --out guarded.toml
  grep -q 'empty = ' stdout guarded.toml && fail "the mask's fault is the empty batch's: $(cat stdout guarded.toml)"
}

# A multiple of the formula by convention is told from every other power of the temperature.
scaled() {
  for function in scaled_distillation unscaled_distillation distillation_by_temperature; do
    printf '[[subject]]\nloss = "jsd"\nentry = "py:near.py:%s"\ninterpreter = "%s"\nreductions = ["token_mean"]\n' \
      "$function" "$python" >"$function.toml"
    printf 'options = { beta = 0, soft_cross_entropy = 0 }\nscale = "temperature^2"\n' >>"$function.toml"
  done
  expect 0 'returns temperature\^2 times the formula: asked where temperature is 1 or 2$' \
    check --quick --config scaled_distillation.toml
  expect 0 'green: 0 red findings' gate --config scaled_distillation.toml --cases 200 --jobs 2 --corpus empty
  for function in unscaled_distillation distillation_by_temperature; do
    disagrees "$function.toml" 60 "$function"
  done
  case=$(grep -l 'reference_agreement violated by' run/findings/*.case | xargs grep -l '^option.temperature: 2' | head -1)
  expect 1 'VIOLATED' replay "$case" --config distillation_by_temperature.toml --emit-test test_scale.py
  grep -q 'loss = loss / 4.*# temperature^2' test_scale.py || fail "$(cat test_scale.py)"
}

# A function that returns its terms is asked for every reduction, which is made of them by the whole step's counts.
terms() {
  expect 0 '= grpo\(token_mean, sequence_mean, seq_mean_token_sum_norm, sum\)' \
    identify --quick near.py:terms --python "$python" --out terms.toml
  grep -q '^returns = "per_token"$' terms.toml || fail "$(cat terms.toml)"
  grep -q '^micro_batches = "sum"' terms.toml || fail "$(cat terms.toml)"
  expect 0 'green: 0 red findings' gate --config terms.toml --corpus empty --cases 24 --jobs 1
  grep -q 'never asked:.* split_invariance' stdout && fail "its splits are not asked: $(cat stdout)"
  sed 's/near.py:terms/near.py:terms_of_one/' terms.toml > one.toml
  disagrees one.toml 24 terms
  case=$(find run/findings -name '*.case' | head -1)
  expect 2 'is written for functions that return their loss; terms returns per_token' \
    replay "$case" --config one.toml --emit-test test_it.py
  # In a mean over all tokens each term's weight is the mean of them: two backwards, each of half of the sequences, differ.
  sed 's/near.py:terms/near.py:terms_of_mean/; s/^reductions.*/reductions = ["token_mean"]/' terms.toml > mean.toml
  expect 1 'grad_mode_invariance VIOLATED by terms' gate --config mean.toml --corpus empty --cases 24 --jobs 1
  grep -q 'cause  *wrong upstream factor' stdout || fail "$(grep cause stdout)"
  for misread in terms_unstrided advantage_by_other_strides; do
    sed "s/near.py:terms/near.py:$misread/" terms.toml > strides.toml
    disagrees strides.toml 48 terms
    grep -q 'cause  *strides ignored' stdout || fail "$misread: $(grep cause stdout)"
  done
}

# Whose micro-batches are right as an average of averages alone: said with its price, where nothing else is right.
averages() {
  expect 0 'splits are right under micro_batches = "mean" alone, with uneven_parts = false$' \
    identify per_sequence.py:mean_over_sequences --python "$python" --out mean.toml
  grep -q 'right only if micro-batches of a rank hold equally many sequences that count: it is an average of averages, wrong where they differ$' stdout ||
    fail "its price is not said: $(cat stdout)"
  grep -q 'it is wrong under "sum", "mean", "token_weighted"; under "mean" with uneven_parts = false below it is right only if ' mean.toml ||
    fail "its splits are not said: $(cat mean.toml)"
  grep -q '^# uneven_parts = false  # right only if ' mean.toml || fail "$(cat mean.toml)"
  sed 's/^micro_batches = "none"/micro_batches = "mean"/' mean.toml >any.toml
  expect 1 'split_invariance VIOLATED' gate --config any.toml --corpus empty --cases 60 --jobs 1 \
    --property reference_agreement,split_invariance --no-causes
  sed 's/^# uneven_parts/uneven_parts/' any.toml >even.toml
  expect 0 'green: 0 red findings' gate --config even.toml --corpus empty --cases 60 --jobs 1
  # It averages by itself, and is told of how many.
  expect 0 'proposal: \[subject.contract\] uneven_parts = false$' \
    identify --quick per_sequence.py:share_of_its_rank --python "$python" --out share.toml
  grep -q '^# uneven_parts = false  # right only if ' share.toml || fail "$(cat share.toml)"
}

# One parameter stands for both clip distances: they are asked together, in every process, and never apart.
one_parameter() {
  expect 0 'clip_high follows clip_low: one parameter stands for both' \
    identify --quick losses.py:one_distance --python "$python" --out one.toml
  grep -q 'clip_' one.toml && fail "a value is left of what it is told: $(cat one.toml)"
  expect 0 'clip_high follows clip_low: one parameter stands for both' check --quick --config one.toml
  expect 0 'green: 0 red findings' gate --config one.toml --corpus "$source/corpora/seeds" --cases 60 --jobs 2
  expect 0 'green: 0 red findings' fuzz --config one.toml --budget '400 cases' --out campaign
  # What is another number above is wrong, unless the file says so.
  sed 's/one_distance/one_distance_below/g' one.toml >below.toml
  disagrees below.toml 48 '' --no-causes
  expect 0 '= grpo\(token_mean\)' identify --quick losses.py:one_distance_below --python "$python" --out below.toml --overwrite
  grep -q 'clip_high = 0.28' below.toml || fail "not what is written into it: $(cat below.toml)"
  expect 0 'green: 0 red findings' gate --config below.toml --corpus empty --cases 48 --jobs 1
}

# With fields of 16 bits: whether each operation rounds to these, which hides an error of a hundredth. What rounds so
# is among what is found.
in_16_bits() {
  expect 0 'keeps arithmetic = \{ compute = "f32" \}$' \
    identify losses.py:widens --python "$python" --out widens.toml
  grep -q '^arithmetic = { compute = "f32" }  # kept on 288 cases: .* times as narrow$' widens.toml ||
    fail "not declared: $(cat widens.toml)"
  grep -q '^wide = \["old_log_prob", "advantage"\]  # kept on 288 cases' widens.toml ||
    fail "not said which fields may be wider: $(cat widens.toml)"
  expect 0 'green: 0 red findings' gate --config widens.toml --corpus empty --cases 100 --jobs 2
  # What it rounds shows where its callers have more digits alone.
  expect 0 'does not keep wide = \["old_log_prob", "advantage"\]: reference_agreement \([0-9]+ cases: narrow arithmetic\)' \
    identify losses.py:rounds_what_is_wide --python "$python" --out rounds.toml
  expect 0 'green: 0 red findings' gate --config rounds.toml --corpus empty --cases 60 --jobs 2
  sed 's/^# wide/wide/' rounds.toml >wide.toml
  expect 1 'reference_agreement .* by rounds_what_is_wide .*bf16' gate --config wide.toml --corpus empty --cases 60 --jobs 2 --property reference_agreement
  grep -q '^advice: rounds_what_is_wide with bf16 fields fits \[\[subject\]\] wide = \["advantage"\], right only if its callers have old_log_prob in bf16' stdout stderr ||
    fail "no other advice: $(grep -h ^advice stdout stderr)"
  cp -r run/findings kept
  expect 1 'reference_agreement .* by rounds_what_is_wide .*bf16' gate --config wide.toml --corpus kept --cases 0 --jobs 2 --property reference_agreement
}

# FUNCTION PATTERN [FILE]: it is not named, and what differs is said.
misses() {
  expect 1 "$2" identify "${3:-near.py}:$1" --python "$python" --out never.toml
  grep -q 'loss and gradients equal' stdout && fail "$1 is named: $(cat stdout)"
  [[ -e never.toml ]] && fail "a guess was written down for $1"
}

near_misses() {
  misses half_kl 'told kl_penalty 0.04, it computes what kl_penalty 0.02 gives'
  misses other_sign 'with the other sign of advantage'
  misses opposite '= -1 x grpo\(token_mean\) on all [0-9]+ cases: the sign is the other'
  misses clips_late 'told clip_high 0.2, it computes what clip_high 0.4 gives'
  misses another_mean 'told token_mean, it computes sequence_mean'
  misses mean_of_chunks '^  as jsd a gate finds in it: mean of means: groups of tokens are averaged one by one' parameters.py
  grep -q '^next: where it should be jsd, lossgate init jsd' stdout || fail "not how to go on: $(tail -2 stdout)"
  grep -q '^next: where it is a loss of its own, signature = ' stdout || fail "nor of what it may be: $(tail -2 stdout)"
  misses refuses_everything '^next: mend that and identify it again; or lossgate init grpo' losses.py
  misses no_advantage 'it does not take advantage'
  misses ratio_detached 'nearest cispo\(token_mean\): equal on [0-9]+ of [0-9]+ cases'
}

# What it is on plain cases alone is said, and what it refuses besides is left to its contract.
hostile() {
  expect 0 'raises where a tensor is a view of other memory' \
    identify --quick near.py:flattened --python "$python" --out views.toml
  grep -q '^non_contiguous = false$' views.toml || fail "$(cat views.toml)"
  grep -q 'but not on all' stdout && fail "a sound function is doubted: $(cat stdout)"
  expect 0 'green: 0 red findings' gate --config views.toml --corpus empty --cases 48 --jobs 1
  sed '/^non_contiguous/d' views.toml >any.toml
  expect 1 'refused a legal input: RuntimeError: view size is not compatible' \
    gate --config any.toml --corpus empty --cases 48 --jobs 1 --property reference_agreement --no-causes
  expect 0 'non_contiguous = false' check --quick --config any.toml
  expect 0 '= grpo\(token_mean\)' identify --quick near.py:compiled_first --python "$python" --out slow.toml
  grep -q '^seconds = 60' slow.toml || fail "its first call takes longer than that: $(cat slow.toml)"
  grep -q '^seconds' views.toml && fail "it does not: $(cat views.toml)"
  expect 0 '= grpo\(token_mean\)' identify --quick near.py:by_items --python "$python" --out items.toml
  grep -Fq 'arguments = { num_items_in_batch = "fact:total_tokens as tensor" }' items.toml || fail "$(cat items.toml)"
  expect 0 'right only where dual_clip is a number$' \
    identify --quick near.py:dual_clipped --python "$python" --out dual.toml
  grep -q 'dual_clip = "number"' dual.toml || fail "$(cat dual.toml)"
  expect 0 'green: 0 red findings' gate --config dual.toml --corpus empty --cases 48 --jobs 1
  expect 0 'but not on all of 72 cases such as a gate draws:' \
    identify --quick near.py:bounded_above --python "$python" --out above.toml
  grep -q 'either it is wrong there, or something else than .*log_ratio_clamp' stdout ||
    fail "what was settled is not doubted: $(cat stdout)"
}

# What several choices of an option are on plain cases is settled by others.
ties() {
  expect 0 'clip_form interval, not clip_form around_old: the same on plain cases, told apart by 72 such as a gate draws$' \
    identify --quick parameters.py:value_by_interval --python "$python" --out critic.toml
  grep -q 'clip_form = "interval"' critic.toml || fail "$(cat critic.toml)"
  grep -q 'reference_agreement' stdout && fail "a sound function is doubted: $(cat stdout)"
  expect 0 'green: 0 red findings' gate --config critic.toml --corpus empty --cases 48 --jobs 1
}

"$test"
exit "$failures"
