# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of the command from outside: `lossgate` is the binary, `failures` the exit status.
failures=0

fail() {
  echo "FAILED: $*"
  failures=1
}

# What findings say, whose lines are broken at spaces, a line each.
unwrapped() { sed -z 's/\n \{12\}/ /g' stdout; }

# STATUS PATTERN ARGUMENTS...: the command must end so and say so; a wrong use in one line.
expect() {
  local status=$1 pattern=$2 actual=0
  shift 2
  LOSSGATE_STARTED_BY=$$ "$lossgate" "$@" >stdout 2>stderr || actual=$?
  [[ $actual == "$status" ]] || fail "exit status $actual, not $status: lossgate $*: $(tail -n 40 stdout) $(cat stderr)"
  grep -Eq -- "$pattern" stdout stderr <(unwrapped) || fail "'$pattern' is not said by lossgate $*: $(cat stdout stderr)"
  if [[ $status == 2 ]]; then
    [[ $(wc -l <stderr) == 1 ]] || fail "not one line: lossgate $*: $(cat stderr)"
  fi
}

# FILE CASES [NAME [FLAG...]]: a gate of so many cases sees that what the file brings, of this name, is not the formula.
# Nothing else is asked: each finding is explained, for a second or more, unless a flag says --no-causes.
disagrees() {
  local file=$1 cases=$2 name=${3-}
  shift $(($# < 3 ? $# : 3))
  expect 1 "reference_agreement VIOLATED${name:+ by $name}" \
    gate --config "$file" --corpus empty --cases "$cases" --jobs 1 --property reference_agreement "$@"
}

# FILE PATTERN: until a process that runs beside this one has written that, a minute at most.
await() {
  local tries=0
  until grep -Eqs -- "$2" "$1"; do
    ((tries++ < 600)) || { fail "'$2' is not written to $1: $(tail -n 5 "$1")"; return; }
    sleep 0.1
  done
}

# Every process that the commands of this test started, at whatever remove, is gone. The tests beside this one have
# workers too, so theirs are told apart by the environment; a signal takes its time, so a dying one has two seconds.
expect_no_orphan() {
  local left tries=0
  left=$(living)
  while [[ -n $left ]] && ((tries++ < 20)); do sleep 0.1 && left=$(living); done
  [[ -z $left ]] || fail "an orphan lives: $(for one in $left; do tr '\0' ' ' <"${one%environ}cmdline"; done)"
}

living() { grep -lsz "^LOSSGATE_STARTED_BY=$$\$" /proc/[0-9]*/environ; }
