# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of losses that a user brings, with the arguments of ci/brought_test.sh.
test=$1 lossgate=$2 python=$3 source=$4 scratch=$5/$1
rm -rf "$scratch" && mkdir -p "$scratch/empty" && cd "$scratch"
cp "$source"/ci/testdata/brought/{flushing,kept,losses,near,per_sequence,tiles,unanswering,unshifted}.py .
source "$source/ci/small_gate.sh"

# FUNCTION LINES...: a lossgate.toml for a function of losses.py.
bring() {
  cat >lossgate.toml <<END
[[subject]]
loss = "grpo"
entry = "py:losses.py:$1"
interpreter = "$python"
reductions = ["token_mean"]
options = { kl_penalty = 0, dual_clip = "none", log_ratio_clamp = 20, level = "token" }
END
  shift
  printf '%s\n' "$@" >>lossgate.toml
}
