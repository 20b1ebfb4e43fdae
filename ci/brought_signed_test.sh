#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Losses that a user brings with a signature of their own, and under autocast, with the arguments of ci/brought_test.sh.
set -uo pipefail
source "$4/ci/bring.sh"
source "$source/ci/warm.sh"

# SIGNATURE FUNCTION LINES...: a lossgate.toml for a loss with a signature of its own.
bring_signed() {
  rm -f lossgate.toml
  beside_signed "$@"
}

# The same, after those that are there already.
beside_signed() {
  cp "$source/ci/testdata/brought/$1.toml" .
  beside "$2" "signature = \"$1.toml\"" '# no loss' '# no reductions' '# no options' "${@:3}"
}

# The only valid row is a difference of equals: what rounding leaves there is no fault, in any format.
difference_of_equals() {
  bring_signed divergence divergence_from_mixture
  local dtype
  for dtype in f32 f64; do
    cat > equals.case <<END
lossgate-case: 1
loss: divergence
reduction: sum
shape: sequences 2, tokens 1, vocab 3
split: whole
layout: contiguous
upstream: 1
field student_logits $dtype
  0 0 0
  0 0 0
field teacher_logits $dtype
  -1 0 0
  0 0 0
field label i64
  0
  0
END
    expect 0 'holds' replay equals.case --config lossgate.toml
  done
  gate 0 'green: 0 red findings' --cases 60
}

# LOGIT: a case of the divergence whose student has this logit beside two of 0.
one_logit() {
  cat <<END
lossgate-case: 1
loss: divergence
reduction: sum
shape: sequences 1, tokens 1, vocab 3
split: whole
layout: contiguous
upstream: 1
field student_logits f32
  $1 0 0
field teacher_logits f32
  -1 0 0
field label i64
  0
END
}

# What f64 has, f32 is to have, too, where there is room for it; what no f32 holds, it need not.
own_overflow() {
  bring_signed divergence unshifted.py:divergence_by_plain_exponentials
  one_logit 100 >logit.case
  expect 1 'still fails' replay logit.case --config lossgate.toml
  grep -q 'in f64 the same function has numbers' stdout || fail "not why: $(cat stdout)"
  one_logit 1e30 >logit.case
  expect 0 'holds' replay logit.case --config lossgate.toml
  bring_signed divergence divergence_from_mixture
  one_logit 100 >logit.case
  expect 0 'holds' replay logit.case --config lossgate.toml
}

own_loss() {
  bring_signed reinforce reinforce 'micro_batches = "sum"' 'ranks = "sum"' '[subject.contract]' 'masked = "any"'
  expect 0 'the same function in f64 stands for a reference' check --quick
  beside_signed reinforce reinforce_with_cancellation 'most_cases = 60'
  gate 0 'green: 0 red findings' --cases 100
  # A hundred, and 29 that are long.
  grep -Eq '^  reinforce +f64 +129 ' stdout || fail "not asked in f64: $(cat stdout)"
  grep -Eq 'reinforce_with_cancellation: its own f64 does not bear out, which is no finding: .*reference_agreement' stdout ||
    fail "no advice: $(cat stdout)"
  bring_signed reinforce reinforce_of_sizes 'micro_batches = "sum"' 'most_cases = 24'
  beside_signed reinforce reinforce_by_micro_batch 'micro_batches = "mean"'
  beside_signed reinforce reinforce_by_products 'most_cases = 24' '[subject.contract]' 'masked = "any"'
  gate 1 'red: ' --cases 60
  red reinforce_by_micro_batch split_invariance
  red reinforce_of_sizes finite_backward 'inputs and loss are finite'
  red reinforce_by_products masked_positions_inert
  local file
  file=$(said_of reinforce_of_sizes | sed -nE 's/^ +replay +lossgate replay ([^ ]+) .*/\1/p' | head -n 1)
  bring_signed reinforce reinforce_of_sizes 'micro_batches = "sum"'
  expect 1 'still fails' replay "$file" --config lossgate.toml
  expect 0 'wrote' minimise "$file" --config lossgate.toml --out small.case
  sed -i 's/role = "mask"/role = "veil"/' reinforce.toml
  expect 2 "reinforce.toml:[0-9]+:[0-9]+: 'role' must be one of differentiable, constant, label, mask" check
  sed -i 's/^signature.*/signature = "absent.toml"/' lossgate.toml
  expect 2 'lossgate.toml:[0-9]+:[0-9]+: .*absent.toml' check
}

# Whoever promises autocast is asked inside it, too, and nobody else.
under_autocast() {
  local sequential=('[subject.arithmetic]' 'sum = "sequential"') promised=('[subject.contract]' 'autocast = true')
  bring products.py:by_einsum "${sequential[@]}"
  expect 0 'computes' check
  grep -q 'fails grad_mode_invariance .*narrowed by autocast' \
    <(said_of by_einsum | grep -FA1 'does not keep [subject.contract] autocast = true') || fail "autocast is not tried: $(cat stdout)"
  gate 0 'green: 0 red findings'
  bring products.py:by_einsum "${sequential[@]}" "${promised[@]}"
  expect 0 'computes' check --quick
  of by_einsum 'proposal: \[subject.contract\] autocast = false$'
  beside products.py:by_einsum_outside "${sequential[@]}" "${promised[@]}"
  beside sound "${promised[@]}"
  gate 1 'red: '
  red by_einsum grad_mode_invariance 'cause +narrowed by autocast' 'inside torch.autocast'
  green by_einsum_outside sound
}

"$test"
exit "$failures"
