# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of losses that a user brings, with the arguments of ci/brought_test.sh. Whatever command asks them
# starts an interpreter, which imports torch for seconds: functions of which the same is asked are asked by one.
test=$1 lossgate=$2 python=$3 source=$4 scratch=$5/$1
rm -rf "$scratch" && mkdir -p "$scratch/empty" && cd "$scratch"
cp "$source"/ci/testdata/brought/{flushing,kept,losses,near,per_sequence,products,tiles,unanswering,unshifted}.py .
source "$source/ci/small_gate.sh"

# [FILE:]FUNCTION LINES...: a lossgate.toml for a function, of losses.py unless a file is said.
bring() {
  rm -f lossgate.toml
  beside "$@"
}

# The same, after those that are there already. A line of a key that has one here stands in its place, '# no KEY' too.
beside() {
  local entry=$1 line
  [[ $entry == *:* ]] || entry=losses.py:$entry
  shift
  {
    echo '[[subject]]'
    for line in 'loss = "grpo"' "entry = \"py:$entry\"" "interpreter = \"$python\"" 'reductions = ["token_mean"]' \
      'options = { kl_penalty = 0, dual_clip = "none", log_ratio_clamp = 20, level = "token" }'; do
      grep -Eq "^(# no )?${line%% *}( =|$)" <(printf '%s\n' "$@") || echo "$line"
    done
    printf '%s\n' "$@"
  } >>lossgate.toml
}

# NAME: what the last command, a check or a gate, said of this subject alone.
said_of() { awk -v name="$1" '/^[^ ]/ { own = ($1 == name && $2 == "computes") || $2 == name || $4 == name } own' stdout; }

# NAME PATTERN...: each was said of this subject.
of() {
  local name=$1 pattern
  for pattern in "${@:2}"; do
    grep -Eq -- "$pattern" <(said_of "$name") || fail "'$pattern' is not said of $name: $(said_of "$name")"
  done
}

# NAME PATTERN: something was said of this subject, but not that.
not_of() {
  of "$1" .
  grep -Eq -- "$2" <(said_of "$1") && fail "'$2' is said of $1: $(said_of "$1")"
}

# NAME PROPERTY PATTERN...: the last gate has this red finding of the subject, and said each of it.
red() {
  of "$1" "^$2 VIOLATED by $1 " "^ +to accept [^ ]+\|$1\|$2\|" "${@:3}"
}

# NAME...: the last gate asked each of these, and nothing that it found of it is red.
green() {
  local name
  grep -q '"troubles": \[\]' run/run.json || fail "it had trouble: $(cat stdout)"
  for name in "$@"; do
    grep -Eq "^  $name +[a-z0-9]+ +[1-9]" stdout || fail "$name was not asked: $(cat stdout)"
    awk -v name="$name" -F'|' '/"fingerprint":/ { own = $3 == name } own && /"state": "red"/ { found = 1 } END { exit found }' \
      run/run.json || fail "$name is not green: $(cat stdout)"
  done
}
