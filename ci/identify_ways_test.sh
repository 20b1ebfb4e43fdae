#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In which ways identify asks a function, from outside, with a Python that has torch.
#   ci/identify_ways_test.sh TEST LOSSGATE PYTHON SOURCE_DIR SCRATCH_DIR
set -uo pipefail
test=$1 lossgate=$2 python=$3 source=$4 scratch=$5/$1
rm -rf "$scratch" && mkdir -p "$scratch/empty" && cd "$scratch"
cp "$source"/ci/testdata/brought/{losses,near,on_policy,parameters,per_sequence}.py .
source "$source/ci/expect.sh"
source "$source/ci/warm.sh"

# Groups as trainers have them: by their size alone, or one after the other.
groups() {
  expect 0 'right only where groups are as large as each other, side by side' \
    identify near.py:by_generations --python "$python" --out size.toml
  grep -q '^uneven_groups = false$' size.toml || fail "$(cat size.toml)"
  grep -q 'but not on all' stdout && fail "a sound function is doubted: $(cat stdout)"
  expect 0 'num_generations +<- field:group as size' check --quick --config size.toml
  expect 0 'green: 0 red findings' gate --config size.toml --cases 60 --jobs 2 --corpus "$source/corpora/seeds"
  expect 0 'right only where groups are as large as each other, side by side' \
    identify --quick near.py:by_blocks --python "$python" --out blocks.toml
  expect 0 'green: 0 red findings' gate --config blocks.toml --cases 60 --jobs 2 --corpus "$source/corpora/seeds"
  sed '/^uneven_groups/d' blocks.toml >any.toml
  disagrees any.toml 24 '' --no-causes
  expect 0 'uneven_groups = false' check --quick --config any.toml
  sed 's/by_generations/by_interleaved_blocks/g' size.toml >interleaved.toml
  disagrees interleaved.toml 24
  case=$(find run/findings -name '*.case' | head -1)
  expect 1 'VIOLATED' replay "$case" --config interleaved.toml --emit-test test_groups.py
  grep -q 'num_generations=int((group == group\[0\]).sum())' test_groups.py || fail "$(cat test_groups.py)"
}

# What a sequence has once, at each of its tokens: a function may mix those of one sequence.
expanded() {
  expect 0 'right only where advantages is one number for each sequence' \
    identify --quick near.py:of_whole_sequences --python "$python" --out once.toml
  grep -q 'but not on all' stdout && fail "a sound function is doubted: $(cat stdout)"
  grep -Fq 'arguments = { advantages = "field:advantage as expanded" }' once.toml || fail "$(cat once.toml)"
  expect 0 'advantages +<- field:advantage as expanded' check --quick --config once.toml
  grep -q 'advantage .*, one number for each sequence$' stdout || fail "not how it is asked: $(cat stdout)"
  expect 0 'green: 0 red findings' gate --config once.toml --cases 60 --jobs 2 --corpus "$source/corpora/seeds"
  sed '/^arguments/d' once.toml >each.toml
  disagrees each.toml 24 '' --no-causes
  expect 0 'proposal: \[\[subject\]\] arguments = . advantages = "field:advantage as expanded" .$' check --quick --config each.toml
  # Its faults are seen nevertheless.
  sed 's/of_whole_sequences/of_whole_sequences_by_two/' once.toml >half.toml
  disagrees half.toml 24
  case=$(find run/findings -name '*.case' | head -1)
  expect 1 'VIOLATED' replay "$case" --config half.toml --emit-test test_half.py
  grep -q 'advantages=advantage' test_half.py || fail "$(cat test_half.py)"
}

# Masks as callers have them who pad on the right, and what says no more than those.
right_padding() {
  expect 0 'right only where the positions of a sequence that count come first' \
    identify near.py:told_lengths --python "$python" --out lengths.toml
  grep -q '^scattered_mask = false$' lengths.toml || fail "$(cat lengths.toml)"
  grep -q 'scattered_mask = true' lengths.toml && fail "who is told lengths is tried: $(cat lengths.toml)"
  expect 0 'response_lengths +<- field:mask as lengths' check --quick --config lengths.toml
  grep -q 'in each sequence the positions that count come first' stdout || fail "its masks are not said: $(cat stdout)"
  expect 0 'green: 0 red findings' gate --config lengths.toml --cases 100 --jobs 2 --corpus "$source/corpora/seeds"
  expect 0 'right only where the positions of a sequence that count come first' \
    identify --quick near.py:advantages_of_responses --python "$python" --out gae.toml
  grep -q 'but not on all' stdout && fail "a sound function is doubted: $(cat stdout)"
  expect 0 'green: 0 red findings' gate --config gae.toml --cases 60 --jobs 2 --corpus "$source/corpora/seeds"
  expect 0 'does not keep \[subject.contract\] scattered_mask = true' check --config gae.toml
  sed '/^scattered_mask/d' gae.toml >any.toml
  disagrees any.toml 24 '' --no-causes
  expect 0 'proposal: \[subject.contract\] scattered_mask = false' check --quick --config any.toml
  # What nobody reads is no fault, and no reason to ask less of the mask.
  expect 0 'right only where nobody reads what it returns at masked positions' \
    identify --quick near.py:whitened_everywhere --loss whitening --python "$python" --out whitened.toml
  grep -q '^masked_outputs = false$' whitened.toml || fail "$(cat whitened.toml)"
  grep -q 'scattered_mask' whitened.toml && fail "its masks are blamed: $(cat whitened.toml)"
  expect 0 'green: 0 red findings' gate --config whitened.toml --profile benign --cases 60 --jobs 1 --corpus empty
  sed '/^masked_outputs/d' whitened.toml >any.toml
  expect 0 'proposal: \[subject.contract\] masked_outputs = false' check --quick --config any.toml
  sed 's/told_lengths/told_one_more/' lengths.toml >more.toml
  expect 1 'VIOLATED' gate --config more.toml --corpus empty --cases 24 --jobs 1 --property reference_agreement
  case=$(find run/findings -name '*.case' | head -1)
  expect 1 'VIOLATED' replay "$case" --config more.toml --emit-test test_lengths.py
  grep -q 'response_lengths=(mask != 0).sum(1)' test_lengths.py || fail "$(cat test_lengths.py)"
}

# A helper that returns log-probs, of which others make a loss.
outputs() {
  expect 0 '= log_prob\(sum\)' identify --quick near.py:selective_log_softmax --python "$python" --out scores.toml
  grep -q '^returns = "outputs"$' scores.toml && grep -q '^outputs = \["log_prob"\]$' scores.toml || fail "$(cat scores.toml)"
  grep -Fq 'arguments = { index = "field:label as ids" }' scores.toml || fail "$(cat scores.toml)"
  grep -q '^micro_batches = "sum"' scores.toml || fail "$(cat scores.toml)"
  expect 0 'index +<- field:label as ids' check --quick --config scores.toml
  expect 0 'green: 0 red findings' gate --config scores.toml --cases 60 --jobs 2 --corpus empty
  sed 's/near.py:selective_log_softmax/near.py:selective_softmax_of_half/' scores.toml >half.toml
  disagrees half.toml 24
  case=$(find run/findings -name '*.case' | head -1)
  expect 2 'is written for functions that return their loss; selective_log_softmax returns outputs' \
    replay "$case" --config half.toml --emit-test test_it.py
}

# Labels that lie at their own tokens, as data sets have them: the loss moves them to the logits that predict them.
shifted() {
  expect 0 '= cross_entropy\(token_mean\)' identify --quick near.py:next_token_loss --python "$python" --out shifted.toml
  grep -q 'labels  *<- field:label as shifted$' stdout && grep -q 'logits  *<- field:logits as shifted$' stdout ||
    fail "not how it is called: $(cat stdout)"
  grep -q 'but not on all' stdout && fail "a sound function is doubted: $(cat stdout)"
  grep -Fq 'labels = "field:label as shifted"' shifted.toml && grep -Fq 'logits = "field:logits as shifted"' shifted.toml ||
    fail "$(cat shifted.toml)"
  expect 0 'labels +<- field:label as shifted' check --quick --config shifted.toml
  expect 0 'green: 0 red findings' gate --config shifted.toml --cases 60 --jobs 2 --corpus "$source/corpora/seeds"
  sed 's/next_token_loss/shifted_twice/' shifted.toml >twice.toml
  expect 1 'VIOLATED' gate --config twice.toml --corpus empty --cases 24 --jobs 1 --property reference_agreement
  case=$(find run/findings -name '*.case' | head -1)
  expect 1 'VIOLATED' replay "$case" --config twice.toml --emit-test test_shifted.py
  grep -Fq 'labels=torch.cat((label[:, :1], label), 1)' test_shifted.py || fail "$(cat test_shifted.py)"
  # Who shifts nothing is asked as before.
  expect 0 '= cross_entropy\(token_mean\)' identify --quick near.py:token_loss --loss cross_entropy --python "$python" --out plain.toml
  grep -q 'as shifted' plain.toml && fail "$(cat plain.toml)"
}

# Trainers that make one step of each batch, and hand over no log-probs or values of before it.
on_policy() {
  local function
  for function in surrogate:grpo reinforce:cispo; do
    expect 0 'right only where old_log_prob is log_prob itself' \
      identify "on_policy.py:${function%:*}" --loss "${function#*:}" --python "$python" --out "${function%:*}.toml"
    expect 0 'old_log_prob does not reach it: taken as log_prob itself' check --quick --config "${function%:*}.toml"
  done
  # Of two losses that it is, the one that has less to be supposed.
  expect 0 '= reinforce\(token_mean\)' identify --quick on_policy.py:reinforce --python "$python" --out plain.toml
  grep -q 'right only where importance_weight is 1$' stdout || fail "$(cat stdout)"
  expect 0 'importance_weight does not reach it: taken as 1$' check --quick --config plain.toml
  expect 0 '= reinforce\(token_mean\)' identify --quick on_policy.py:weighted --python "$python" --out weighted.toml
  expect 0 'right only where old_value is value itself' \
    identify on_policy.py:critic --loss value_clip --python "$python" --out critic.toml
  expect 0 'green: 0 red findings' gate --config surrogate.toml,reinforce.toml,weighted.toml,critic.toml --cases 200 --jobs 2 --corpus empty
  sed 's/reinforce/reinforce_by_half/' reinforce.toml >half.toml
  expect 1 'reference_agreement VIOLATED' gate --config half.toml --cases 24 --jobs 1 --corpus empty --no-causes
}

"$test"
exit "$failures"
