#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The command from outside: exit statuses and messages. LOSSGATE is the command over implementations
# that crash, hang, throw or are wrong when a test wants them to (ci/fake/catalog.cpp).
#   ci/command_test.sh TEST LOSSGATE SOURCE_DIR SCRATCH_DIR
set -uo pipefail
test=$1 lossgate=$2 source=$3 scratch=$4/$1
rm -rf "$scratch" && mkdir -p "$scratch/empty" && cd "$scratch"
source "$source/ci/expect.sh"

# A small run: expect's arguments, with the flags that all runs share.
gate() {
  local status=$1 pattern=$2
  shift 2
  expect "$status" "$pattern" gate --corpus empty --loss grpo --cases 4 --jobs 1 "$@"
}

# The case of some finding, with another title.
case_titled() {
  gate 1 'red: ' --impl fake_wrong --dtype f32 --out titled
  local file
  file=$(find titled/findings -name '*.case' | sort | head -n 1)
  sed -E "s/^title:.*/title: $1/" "$file"
}

minimise() {
  gate 1 'red: ' --impl fake_wrong --dtype f32 --out wrong
  local file
  # What the gate leaves is minimal already, and says where it comes from: one token, but for a term
  # that is wrong beside an infinite one, where the loss says nothing.
  file=$(grep -l '^shape: sequences 1, tokens 1' wrong/findings/*.case | head -n 1)
  [[ -n "$file" ]] || fail 'no finding is minimal'
  expect 0 'unusual numbers [0-3]$' minimise "$file" --impl fake_wrong --out small.case
  expect 0 'wrote +small.case' minimise "$file" --impl fake_wrong --out small.case --overwrite
  expect 1 'still fails' replay small.case --impl fake_wrong
  grep -q '^story: .*violated by fake_wrong' small.case || fail 'small.case does not say what it was'
  expect 0 'wrote +simple.case' minimise "$source/corpora/seeds/grpo/on-policy.case" --impl fake_wrong --out simple.case
  grep -q '^story: minimised from case' simple.case || fail 'simple.case does not say what it was'
  expect 2 'small.case is there already' minimise "$file" --impl fake_wrong --out small.case
  expect 0 'nothing simpler fails the same way; written as it was' minimise small.case --impl fake_wrong --out again.case
  diff small.case again.case || fail 'it is not written as it was'
  # A search may take hours: where nothing can be written is said before it.
  expect 3 'small.case/in.case: cannot be written: Not a directory' \
    minimise "$file" --impl fake_wrong --out small.case/in.case
  grep -q 'violates' stdout && fail "it searched before it said so: $(cat stdout)"
  # What comes and goes may take several times; this one fails for good once it was called often enough.
  expect 1 '^held [1-9][0-9]* of 60 times; failed first at time [1-9][0-9]*, shown above$' \
    replay small.case --impl fake_weary --property inputs_not_mutated --times 60
  grep -q 'fake_weary FAILED: ' stdout || fail "the time that failed is not shown: $(cat stdout)"
  expect 0 '^held 3 of 3 times$' replay small.case --impl fake_exact --times 3
  expect 2 'times' replay small.case --impl fake_exact --times 0
  # A case of two findings says both, and is known by either.
  sed 's/^story: .*/story:\n  finite_forward violated by fake_wrong\n\n  reference_agreement violated by fake_exact/' \
    "$(grep -l '^story: ' wrong/findings/*.case | head -n 1)" >both.case
  expect 0 'what it was stored for is mended' replay both.case --impl fake_exact --property reference_agreement
  grep -q '^  | finite_forward violated by fake_wrong$' stdout || fail "the first is not told: $(cat stdout)"
  grep -q '^  | reference_agreement violated by fake_exact$' stdout || fail "the second is not told: $(cat stdout)"
  expect 0 'nothing to minimise' minimise "$file" --impl fake_exact --out sound.case
  [[ ! -e sound.case ]] || fail 'a file was written for nothing'
  expect 0 'all that it may; --tries N' minimise "$file" --impl fake_wrong --tries 1 --out one.case
  expect 2 'No such file|cannot open|missing' minimise missing.case
  expect 2 "did you mean 'fake_wrong'" minimise "$file" --impl fake_wron --out other.case
}

# A case of so many tokens, on which nothing is wrong.
long_case() {
  sed -E "/^field/,\$d; s/^shape:.*/shape: sequences 1, tokens $1/" "$source/corpora/seeds/grpo/on-policy.case"
  awk -v n="$1" '
    function field(name, dtype, even, odd,   i) {
      printf "field %s %s\n ", name, dtype
      for (i = 0; i < n; ++i) printf " %s", i % 2 ? odd : even
      printf "\n\n"
    }
    BEGIN {
      field("log_prob", "f32", -0.5, -0.25)
      field("old_log_prob", "f32", -0.5, -0.25)
      field("ref_log_prob", "f32", -0.5, -0.25)
      field("advantage", "f32", 1, -1)
      field("mask", "u8", 1, 1)
    }'
}

share() {
  gate 1 'red: ' --impl fake_wrong --dtype f32 --out wrong
  local file value
  file=$(find wrong/findings -name '*.case' | sort | head -n 1)
  sed 's/^title: .*/title: of a project that nobody knows/' "$file" >given.case
  grep -q 'nobody' given.case || fail 'the case has no title'
  expect 0 'wrote shared.case, which contains this and nothing else' share given.case --impl fake_wrong --out shared.case
  grep -q 'nobody' shared.case stdout && fail "prose is shared: $(cat shared.case)"
  for value in $(sed -n '/^field/,$p' shared.case | grep -v '^field'); do
    grep -Eq -- "(^| )$value( |\$)" stdout || fail "$value is in the file and not listed: $(cat stdout)"
  done
  expect 1 'still fails' replay shared.case --impl fake_wrong
  expect 2 'shared.case is there already' share given.case --impl fake_wrong --out shared.case
  expect 0 'nothing fails, so no number can be left out' share given.case --impl fake_exact --out all.case
  # Nobody reads thousands of numbers.
  long_case 300 >long.case
  expect 0 'log_prob +f32, 300 numbers from -0.5 to -0.25; 300 are not 0' \
    share long.case --impl fake_exact --out listed.case
  grep -q '^1500 numbers are too many to list: listed.case has each' stdout || fail "$(cat stdout)"
  [[ $(wc -c <stdout) -lt 3000 ]] || fail "$(wc -c <stdout) bytes are printed"
}

# The record without what may differ between runs.
comparable() {
  sed -E 's/"seconds": [^,]*/"seconds": 0/' "$1"
}

help() {
  local verb
  for verb in '' gate fuzz merge replay minimise share explain list describe identify check init baseline report; do
    expect 0 '' $verb --help
    diff "$source/ci/testdata/help${verb:+_$verb}.txt" stdout || fail "help of '$verb' has changed"
    expect 0 '' help $verb
    diff "$source/ci/testdata/help${verb:+_$verb}.txt" stdout || fail "help $verb says something else"
  done
}

# A command that lies by itself: nothing is stored above it.
alone() {
  local folder lossgate=$lossgate none="there are no 'regressions' and 'corpora/seeds' here or above the command"
  folder=$(mktemp -d)
  cp "$lossgate" "$folder/lossgate"
  lossgate=$folder/lossgate
  expect 0 "^no stored case was asked: $none" gate --loss grpo --impl fake_exact --cases 4 --jobs 1 --out alone
  expect 2 "no case to run: --cases 0 draws none, and $none" gate --impl fake_exact --cases 0 --out alone
  rm -rf "$folder"
}

usage() {
  expect 2 "did you mean 'gate'" gat
  expect 2 'subcommand' # no command at all
  expect 2 'known: benign, hostile, soak' gate --profile nasty
  expect 2 "did you mean 'hostile'" gate --profile hostil
  expect 2 "did you mean 'rare'" gate --fail-on rar
  gate 2 "unknown loss 'grpq'; did you mean 'grpo'" --loss grpq
  gate 2 "did you mean 'fake_exact'" --impl fake_exac
  gate 2 "did you mean 'finite_forward'" --property finite_forwrd
  gate 2 "unknown dtype 'f31'" --dtype f31
  gate 2 'cases' --cases -1
  gate 2 "^lossgate: --cases: expected a whole number from 0 to 1000000000, found 'many'$" --cases many
  gate 2 'seed' --seed -1
  gate 2 "^lossgate: --seed: expected a whole number from 0, found 'abc'$" --seed abc
  gate 2 "whole number.*'1.5'" --seed 1.5
  gate 2 'jobs' --jobs 5000
  gate 2 'nothere' --corpus nothere
  gate 2 'nothere.txt.*expected' --waivers nothere.txt
  gate 2 'nothere.txt.*expected' --baseline nothere.txt
  expect 2 'no case to run: --cases 0 draws none, and no case of what is asked is stored in empty; --cases 1' \
    gate --corpus empty --cases 0 --impl fake_exact
  expect 2 'no case to run: no implementation of jsd called fake_exact' \
    gate --corpus empty --loss jsd --impl fake_exact --out nothing
  alone
  expect 2 "^lossgate: gate has no option '--colour'; see lossgate gate --help$" gate --colour
  expect 2 "^lossgate: gate has no option '--otu'; did you mean '--out'\?$" gate --otu x
  expect 2 "^lossgate: gate has no use for 'x'$" gate x
  expect 2 "did you mean 'losses'" list losse
  expect 2 "did you mean 'finite_backward'" describe finite_bakward
  expect 2 'nothere/run.json' baseline nothere/run.json
  echo '--cases 4
--sede 3' >flags.args
  expect 2 'flags.args:2: .*--sede' gate @flags.args
  # Blamed is the word that the message speaks of, not one that it holds, nor one said over.
  printf '%s\n' '--cases 7' '--jobs 7000' >flags.args
  expect 2 'lossgate: flags.args:2: --jobs: ' gate @flags.args
  printf '%s\n' '--cases 7000' '--jobs 1' >flags.args
  expect 2 "lossgate: --jobs: .*'7000'" gate @flags.args --jobs=7000
  echo '= 1' >broken.toml
  expect 2 'lossgate: broken.toml:1:1: ' gate @flags.args --config broken.toml
  expect 2 'nothere.args.*expected' gate @nothere.args
  expect 2 'expected a file, found a directory' gate @empty
  echo 'a | b | c' >waivers.txt
  gate 2 'waivers.txt:1: expected' --waivers waivers.txt
  echo 'grpo|*|x | why | #1 | expires 2026-13-01' >waivers.txt
  gate 2 "waivers.txt:1: key 'expires'" --waivers waivers.txt
  [[ ! -e run ]] || fail 'something was written'
}

case_files() {
  case_titled 'a title' >good.case
  expect 0 'holds' replay good.case --impl fake_exact
  expect 1 'still fails' replay good.case --impl fake_wrong
  grep -Eq '^  fake_wrong +skipped \(red already\)$' stdout || fail "why less is asked is not said: $(cat stdout)"
  : >empty.case
  expect 2 'empty.case' replay empty.case
  expect 2 'empty: .*directory' replay empty
  expect 2 'nothere.case' replay nothere.case
  head -c 300 good.case >short.case
  expect 2 'short.case' replay short.case
  sed 's/^reduction:.*/reduction: mean/' good.case >reduction.case
  expect 2 'reduction.case:[0-9]+.*reduction' replay reduction.case
  sed 's/^loss:.*/loss: grpq/' good.case >loss.case
  expect 2 'loss.case:[0-9]+.*loss' replay loss.case
  sed '2i colour: red' good.case >unknown.case
  expect 2 'unknown.case:2.*colour' replay unknown.case
  sed 's/^title:.*/title: \xff/' good.case >utf8.case
  expect 2 'utf8.case' replay utf8.case
  mkdir broken && cp short.case broken
  gate 2 'short.case' --corpus broken --impl fake_exact
  sed 's/^title:.*/&\nexpect: fake_doubled:finite_bakward/' good.case >expect.case
  expect 2 "expect.*did you mean 'finite_backward'" replay expect.case
  printf '\377\377\377\377\377\377\377\177{}' >huge.safetensors
  expect 2 'huge.safetensors' replay huge.safetensors
}

out_folder() {
  echo text >file
  gate 2 'out file: file is a file, no folder' --impl fake_exact --out file
  gate 2 'out file/below: file is a file, no folder' --impl fake_exact --out file/below
  gate 3 'nothing can be written' --impl fake_exact --out /proc/nothere
  (ulimit -f 16 && "$lossgate" gate --corpus empty --cases 4 --jobs 1 --impl fake_exact --out full) \
    >stdout 2>stderr
  [[ $? == 3 ]] || fail 'a folder that takes no more must be met before the run'
  grep -q 'nothing can be written' stderr || fail "said instead: $(cat stderr)"
  mkdir -p campaign/findings && touch campaign/journal campaign/findings/0123456789abcdef.case
  gate 2 'campaign holds a campaign' --impl fake_exact --out campaign
  [[ -e campaign/findings/0123456789abcdef.case ]] || fail 'the findings of a campaign are gone'
}

verdicts() {
  gate 0 'green: 0 red findings' --impl fake_exact
  # A hostile run knows what a benign case shows as well.
  gate 1 'red: [1-9]' --impl fake_wrong --out wrong
  grep -q '"grade": "ordinary"' wrong/run.json || fail 'what is wrong everywhere is not ordinary'
  gate 1 'killed 1 of 1' --impl fake_exact --impl fake_wrong --impl fake_doubled
  gate 0 'killed 1 of 1, 1 \(100.0 %\) within the first 8' --impl fake_exact --impl fake_doubled
  gate 1 '1 faulty variant survived' --impl fake_exact --impl fake_survivor
}

# All of a record that is decided without looking into its findings.
decided() {
  python3 - "$1" <<'END'
import json, sys
record = json.load(open(sys.argv[1], encoding="utf-8"))
looked_into = {"cause", "confidence", "fault", "shows", "no_experiment", "reach", "detail", "place", "inputs", "options",
               "actual", "expected", "allowed", "half_width", "error_ratio", "ulp_error", "allclose", "outputs",
               "source_file", "source_line", "source_text", "case", "case_file", "repro"}
record["findings"] = [{key: f[key] for key in f if key not in looked_into} for f in record["findings"]]
record["timings"] = [dict(timing, seconds=0) for timing in record["timings"]]
record.update(seconds=0, request=dict(record["request"], causes=None))
print(json.dumps(record, indent=1))
END
}

# The verdicts are those of a run that looks into its findings, and each says that nobody did.
without_causes() {
  local run=(--impl fake_exact --impl fake_wrong --impl fake_doubled --cases 40)
  gate 1 'red: [1-9]' "${run[@]}" --out whole
  grep -q 'no cause was looked for' stdout && fail 'it says of a whole run what is not so'
  gate 1 '^no cause was looked for, and no case made simple: --no-causes$' "${run[@]}" --no-causes --out bare
  diff <(decided whole/run.json) <(decided bare/run.json) || fail 'the verdicts differ'
  grep -q 'made simple from case' whole/findings/*.case || fail 'no case was made simple, so nothing is shown'
  grep -q 'made simple from case' bare/findings/*.case && fail 'a case was made simple'
  grep -Eq '^  cause +.*; no experiment was made: --no-causes$' stdout || fail "a cause is told: $(grep cause stdout)"
  grep -q 'no experiment says more' stdout && fail 'it seems that experiments were made'
  gate 1 'red: [1-9]' "${run[@]}" --no-causes --jobs 0 --out here
  diff <(comparable bare/run.json) <(comparable here/run.json) || fail 'a process of its own looks into them'
  # What is accepted of the one is accepted of the other.
  expect 0 'accepted' baseline bare/run.json --out accepted.txt
  gate 0 'green' --impl fake_exact --impl fake_wrong --impl fake_doubled --cases 40 --out again --baseline accepted.txt
  expect 1 'still fails' replay "$(grep -l 'violated by fake_wrong' bare/findings/*.case | head -n 1)" --impl fake_wrong
  gate 0 'green: 0 red findings' --impl fake_exact --no-causes
  grep -q 'no cause was looked for' stdout && fail 'there was nothing to look into'
}

same_verdicts() {
  gate 1 'red' --impl fake_exact --impl fake_wrong --impl fake_doubled --cases 40 --out one
  gate 1 'red' --impl fake_exact --impl fake_wrong --impl fake_doubled --cases 40 --out two --jobs 2
  gate 1 'red' --impl fake_exact --impl fake_wrong --impl fake_doubled --cases 40 --out none --jobs 0
  diff <(comparable one/run.json) <(comparable two/run.json) || fail 'one and two jobs differ'
  diff <(comparable one/run.json) <(comparable none/run.json) || fail 'a process of its own differs'
  diff -r one/findings two/findings || fail 'the findings differ'
  grep -Fq "$scratch" one/run.json && fail 'the record holds a path of this machine'
  python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' one/junit.xml ||
    fail 'junit.xml is not well-formed'
}

containment() {
  mkdir corpus
  case_titled crash >corpus/1-crash.case
  sed 's/^title:.*/title: hang/' corpus/1-crash.case >corpus/2-hang.case
  sed 's/^title:.*/title: throw/' corpus/1-crash.case >corpus/3-throw.case
  sed -i 's/^title:.*/&\nexpect: fake_fragile:finite_forward/' corpus/1-crash.case
  gate 1 'does_not_crash VIOLATED by fake_fragile' --corpus corpus --timeout 2 \
    --impl fake_exact --impl fake_fragile --dtype f32 --out held
  grep -q 'does_not_hang VIOLATED by fake_fragile' stdout || fail 'the hang was not found'
  grep -q 'signal 6' stdout || fail 'the signal is not named'
  grep -q 'threw: out of patience' stdout || fail 'the exception is not named'
  grep -q 'replay .*--impl fake_fragile$' stdout || fail 'a replay would refuse does_not_crash'
  grep -q '7 of 7 cases' stdout || fail 'the run did not go on'
  gate 0 '60 of 60 cases' --corpus empty --cases 60 --jobs 1 --impl fake_weary --dtype f32 --out weary
  grep -q 'fake_weary crashed or hung 40 times' weary/run.json || fail 'the rest is skipped without a reason'
  # Of seed 1 the first case holds twice its loss to be right, and the fakes would say no more.
  gate 1 'reference_agreement VIOLATED by fake_secretive' --corpus empty --cases 9 --jobs 1 --seed 2 \
    --impl fake_secretive --property reference_agreement --dtype f32 --out secretive
  gate 1 'reference_agreement VIOLATED by fake_leaving' --corpus empty --cases 9 --jobs 1 --seed 2 \
    --impl fake_leaving --property reference_agreement --dtype f32 --out leaving
  grep -q 'does_not_crash VIOLATED' stdout && fail 'a call that was not made crashed'
  expect_no_orphan
}

# SIGNAL: to the workers, too, as a terminal and a CI service send it. One that ends by it did not crash.
interrupted_by() {
  rm -rf cut
  "$lossgate" gate --corpus empty --cases 1000000 --jobs 2 --impl fake_wrong --out cut >stdout 2>stderr &
  local pid=$! waited=0
  until [[ -d cut ]] || ((waited++ > 100)); do sleep 0.1; done
  sleep 3
  awk -v gate="$pid" '$4 == gate { print $1 }' /proc/[0-9]*/stat 2>/dev/null | xargs kill "-$1"
  sleep 1
  kill "-$1" "$pid"
  wait "$pid"
  local status=$?
  [[ $status == 130 ]] || fail "exit status $status, not 130: $(cat stderr)"
  grep -q '"interrupted": true' cut/run.json || fail 'the record does not say so'
  grep -q 'interrupted' stdout || fail 'the board does not say so'
  ! grep -q 'does_not_crash' stdout || fail "a crash, where $1 ended the worker"
}

# No case ends while a finding is made simple: a line of the log says what is done instead.
interrupted_at_a_finding() {
  "$lossgate" gate --corpus empty --loss grpo --cases 4 --jobs 1 --impl fake_dwelling --dtype f32 \
    --property reference_agreement --out into >stdout 2>stderr &
  local pid=$!
  await stderr '^cases 0/4, looking into 1 finding$'
  kill -INT "$pid"
  wait "$pid"
  local status=$?
  [[ $status == 130 ]] || fail "exit status $status, not 130: $(cat stderr)"
}

interruption() {
  interrupted_by INT
  interrupted_by TERM
  interrupted_at_a_finding
}

acceptance() {
  gate 1 'red' --impl fake_wrong --out first
  expect 0 'accepted' baseline first/run.json --out accepted.txt
  expect 2 'accepted.txt is there already; say --overwrite, or --out FILE' baseline first/run.json --out accepted.txt
  expect 0 'accepted' baseline first/run.json --out accepted.txt --overwrite
  gate 0 'green' --impl fake_wrong --out second --baseline accepted.txt
  expect 0 '' baseline second/run.json
  diff accepted.txt stdout || fail 'the baseline of the same findings differs'
  echo 'grpo|*|fake_wrong|* | a fake | #1 | expires 2999-12-31' >waivers.txt
  gate 0 'green' --impl fake_wrong --waivers waivers.txt
  echo 'grpo|*|fake_wrong|* | a fake | #1 | expires 2001-12-31' >waivers.txt
  gate 1 'expires 2001-12-31' --impl fake_wrong --waivers waivers.txt
  echo 'grpo|x|fake_wrong|finite_bakward|* | a fake | #1 | expires 2999-12-31' >waivers.txt
  gate 1 "fits nothing that exists: .*: no property is called 'finite_bakward'; did you mean 'finite_backward'" \
    --impl fake_wrong --waivers waivers.txt
  head -n 3 accepted.txt >fewer.txt
  gate 1 'red' --impl fake_wrong --baseline fewer.txt
  sed 's/"schema": 1/"schema": 2/' first/run.json >newer.json
  expect 2 'newer.json: schema: expected version 1, not 2' baseline newer.json
  head -c 1000 first/run.json >short.json
  expect 2 'short.json' baseline short.json
}

reports() {
  gate 1 'results: first/run.json, first/report.html, first/report.sarif, first/junit.xml, first/summary.md' \
    --impl fake_wrong --out first
  gate 0 'green' --impl fake_exact --out second
  cp -r first kept
  expect 0 'red: [1-9].* red' report first
  diff kept/report.sarif first/report.sarif || fail 'the record of the gate gives another SARIF'
  diff kept/summary.md first/summary.md || fail 'the record of the gate gives another summary'
  # Its commands find the cases from here on, wherever the record has gone.
  cp -r first again
  expect 0 'red: [1-9].* red' report again
  grep -q 'lossgate replay again/findings/' again/summary.md || fail 'a command for another folder'
  expect 0 'results: page/report.html' report again first/run.json --out page
  expect 0 '' report again first/run.json --out twice
  diff -r page twice || fail 'the same records give other pages'
  grep -q 'since again, 0 gone' page/report.html || fail 'the page does not compare'
  grep -q 'class="grid"' page/report.html || fail 'no case is drawn'
  sed 's/"schema": 1/"schema": 2/' first/run.json >newer.json
  expect 2 'newer.json: schema: expected version 1, not 2' report newer.json
  local length
  for length in 0 1 2 100 1000 5000 "$(($(stat -c %s first/run.json) - 3))"; do
    head -c "$length" first/run.json >short.json
    expect 2 'short.json: line [0-9]+, column [0-9]+: expected more' report short.json --out cut
  done
  [[ ! -e cut ]] || fail 'something was written of a record that was cut'
  expect 2 'nothere/run.json: cannot be opened' report nothere/run.json
  echo '{"benchmarks": [{"name": "jsd/8", "cpu_time": 2.5, "time_unit": "us"}]}' >speeds.json
  expect 0 '' report first --benchmarks speeds.json --out measured
  grep -q 'jsd/8<td>2.5 µs' measured/report.html || fail 'no benchmark is shown'
  cp speeds.json again/benchmarks.json
  expect 0 '' report again first/run.json --benchmarks speeds.json --out measured
  grep -q 'times as long as in again' measured/report.html || fail 'benchmarks are not compared'
  head -c 40 speeds.json >again/benchmarks.json
  expect 2 'again/benchmarks.json: line 1, column 41: expected more' report again --out cut
  expect 2 'nothere.json: cannot be opened' report first --benchmarks nothere.json --out cut
  [[ ! -e cut ]] || fail 'something was written beside benchmarks that were cut'
  expect 3 'nothing can be written there' report first --out first/run.json
}

listing() {
  expect 0 'finite_backward' list
  grep -q fake_exact stdout && fail 'the list opens the implementations unasked'
  expect 0 'fake_doubled' list implementations
  expect 0 'hostile' list profiles
  expect 0 'old_log_prob' describe grpo
  expect 0 'gradient' describe finite_backward
  expect 0 'usual fix' describe does_not_hang
  expect 0 'usual fix' describe 'mean of means'
  expect 0 '\*\*B4\.\*\*' describe B4
  expect 0 'no trigger' describe vacuous
  expect 0 'has not been looked at' describe relaxed
  expect 0 'twin of fake_exact' describe fake_doubled
}

"$test"
exit "$failures"
