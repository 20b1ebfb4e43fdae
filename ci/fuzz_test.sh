#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Campaigns from outside. LOSSGATE is the command over implementations that behave as tests want
# (ci/fake/catalog.cpp).
#   ci/fuzz_test.sh TEST LOSSGATE SOURCE_DIR SCRATCH_DIR [ROUNDS]
# ROUNDS is how often `kills` kills.
set -uo pipefail
test=$1 lossgate=$(realpath -e "$2") source=$(realpath -e "$3") scratch=$4/$1 rounds=${5:-8}
[[ -x $lossgate && -d $source ]] || exit 2
rm -rf "$scratch" && mkdir -p "$scratch" && cd "$scratch"
source "$source/ci/expect.sh"

verdicts() {
  expect 0 'green: 0 red findings' fuzz grpo --impl fake_exact --dtype f32,f64 --budget '300 cases' --workers 1 --out sound
  grep -q '"cases_run": 300' sound/run.json || fail "another number of cases was asked"
  grep -q 'id="campaign"' sound/report.html || fail 'the page does not show how it went'
  grep -Eq '"memory_mib": [1-9]' sound/run.json || fail 'the record does not say how much memory it took'
  expect 1 'VIOLATED by fake_wrong' fuzz --impl fake_wrong --budget '300 cases' --workers 2 --out wrong
  grep -q 'reference_agreement' stdout || fail 'the fault was not found'
  # What is left of a finding is minimal, and fails when it is replayed. (Some causes need two sequences.)
  local file
  file=$(grep -l '^shape: sequences 1, tokens 1' wrong/findings/*.case | head -n 1)
  [[ -n $file ]] || fail 'no finding is minimal'
  expect 1 'still fails' replay "$file" --impl fake_wrong
  # Every kind of finding once, and again where a more ordinary case shows it, whatever the number of cases.
  grep -o '"fingerprint":"[^"]*","grade":"[a-z]*"' wrong/journal | sort | uniq -d | grep . && fail 'a finding twice'
  diff <(grep -o 'findings/[0-9a-f]*.case' wrong/journal | sort -u) \
    <(cd wrong && find findings -name '*.case' | sort) || fail 'findings without their cases'
  while read -r file; do
    [[ -f wrong/$file ]] || fail "the record names $file, which was never written"
  done < <(grep -o 'findings/[0-9a-f]*\.case' wrong/run.json | sort -u)
  expect 0 'results: page/report.html' report wrong --out page
  expect 1 'VIOLATED by fake_doubled' fuzz --impl fake_doubled --budget '100 cases' --out doubled
  # Files of one name are two cases.
  local one other
  one=$(find wrong/findings -name '*.case' | sort | head -n 1) other=$(find wrong/findings -name '*.case' | sort | tail -n 1)
  mkdir a b && cp "$one" a/same.case && cp "$other" b/same.case
  expect 0 'green' fuzz --impl fake_exact --corpus a --corpus b --budget '10 cases' --out both
  for file in "$one" "$other"; do
    [[ -f both/corpus/grpo/$(basename "$file") ]] || fail "not in the corpus: $file"
  done
}

usage() {
  expect 2 "did you mean 'grpo'" fuzz grpp
  expect 2 "did you mean 'fake_exact'" fuzz --impl fake_exat
  expect 2 '--budget 8: expected a time such as 8h' fuzz --budget 8
  expect 2 '--shard 3/2: expected I/N' fuzz --shard 3/2
  expect 2 'nothing to search: no implementation of jsd called fake_exact' fuzz jsd --impl fake_exact
  [[ ! -e campaign ]] || fail 'a campaign of nothing is begun'
  expect 2 'workers' fuzz --workers 0
  expect 2 'nothere' fuzz --impl fake_exact --corpus nothere --out corpus
  echo text >file
  expect 2 '--out file: file is a file, no folder' fuzz --impl fake_exact --out file
  mkdir gated && echo '{}' >gated/run.json
  expect 2 'gated holds the record of a gate, no campaign: name another' fuzz --impl fake_exact --out gated
  [[ $(cat gated/run.json) == '{}' ]] || fail 'the record of a gate is replaced'
  expect 2 'nothere holds no campaign' merge nothere --out merged
  expect 2 '--out file: file is a file, no folder' merge nothere --out file
  expect 2 'nothere.txt.*expected' fuzz --impl fake_exact --waivers nothere.txt
  expect 2 'nothere.txt.*expected' fuzz --impl fake_exact --baseline nothere.txt
}

resumption() {
  expect 1 'VIOLATED' fuzz --impl fake_wrong --budget '200 cases' --workers 1 --out run
  local found
  found=$(grep -c '"found"' run/journal)
  expect 1 'going on after .* 200 cases, [0-9]+ findings' \
    fuzz --impl fake_wrong --budget '400 cases' --workers 1 --out run
  grep -q 'red: [1-9]' stdout || fail 'the findings of before are forgotten'
  # A budget that is spent leaves nothing to do.
  expect 1 '^1 implementation, 100 cases; going on after' fuzz --impl fake_wrong --budget '100 cases' --workers 1 --out run
  grep -q '^budget spent: nothing is searched; --budget +8h' stdout || fail "nobody says why nothing is done: $(cat stdout)"
  expect 1 'going on after .* 400 cases' fuzz --impl fake_wrong --budget '+50 cases' --workers 1 --out run
  grep -q '"cases_run": 450' run/run.json || fail 'a budget from now counts what was spent before'
  # What the journal knows to be plainer than the record says is so.
  sed -i 's/"grade": "[a-z]*"/"grade": "adversarial"/' run/run.json
  expect 1 'red: [1-9]' fuzz --impl fake_wrong --budget '100 cases' --workers 1 --out run
  # Going on otherwise is said, and what was is kept.
  expect 1 '^run: asked before and not now: grpo/fake_wrong; ' fuzz --impl fake_exact --seed 7 --budget '10 cases' --workers 1 --out run
  grep -q '^run: begun with seed 1, ' stdout || fail "nobody says that the seed is another: $(cat stdout)"
  grep -q '"seed": 1,' run/run.json || fail 'the record has another seed than the campaign began with'
  grep -q '"name": "fake_wrong"' run/run.json || fail 'the record lacks what was found wrong'
  # A damaged line is skipped, counted and said; the rest counts.
  sed -i '2s/^./x/; 3s/"/q/' run/journal
  expect 1 'run/journal: [12] damaged lines skipped' fuzz --impl fake_wrong --budget '100 cases' --out run
  sed -i 's/"journal":1/"journal":7/' run/journal
  local line
  line=$(head -n 1 run/journal | cut -d' ' -f2-)
  printf '%s %s\n' "$(checksum "$line")" "$line" >run/journal
  expect 2 'journals have version 7, expected 1' fuzz --impl fake_wrong --out run
}

# What was found is asked again: mended it is red no more, and again when it comes back.
mending() {
  local searched=(fuzz --impl fake_mendable --dtype f32 --budget '200 cases' --workers 1)
  expect 1 'VIOLATED' "${searched[@]}" --out run
  expect 1 '^[1-9][0-9]* findings? of before asked again: [1-9][0-9]* fails?, 0 mended' "${searched[@]}" --out run
  # What takes earlier calls holds alone, mended or not.
  cp -r run kept
  sed -i 's/"cause": "[^"]*"/"cause": "state between calls"/' kept/run.json
  LOSSGATE_FAKE_MENDED=1 expect 1 'asked again: 0 fail, [0-9]+ mended, [1-9][0-9]* not answered$' "${searched[@]}" --out kept
  export LOSSGATE_FAKE_MENDED=1
  expect 0 '^[1-9][0-9]* findings? of before asked again: 0 fail, [1-9][0-9]* mended$' "${searched[@]}" --out run
  grep -Eq '^mended: grpo\|.*: held when asked again \(findings/[0-9a-f]*\.case\)$' stdout || fail 'what is mended is not named'
  grep -Eq '^green: 0 red findings, [1-9][0-9]* mended$' stdout || fail "the verdict does not tell: $(tail -n 2 stdout)"
  grep -q 'held when asked again' run/summary.md || fail 'the summary does not tell'
  grep -q '"findings": \[\]' run/run.json || fail 'the record keeps a finding that is mended'
  grep -q '<failure' run/junit.xml && fail 'a test fails by what is mended'
  local file
  while read -r file; do
    [[ -f run/corpus/grpo/${file##*/} ]] || fail "nothing is searched near its case: $file"
  done < <(grep -o 'findings/[0-9a-f]*\.case' run/run.json | sort -u)
  expect 0 'mended' merge run --out merged
  expect 0 ', [1-9][0-9]* mended' "${searched[@]}" --out merged
  unset LOSSGATE_FAKE_MENDED
  expect 1 '^fails again: grpo' "${searched[@]}" --out merged
  # What is not asked is not said to be mended.
  LOSSGATE_FAKE_MENDED=1 expect 1 'red: [1-9]' "${searched[@]}" --property determinism --out merged
}

# What is found on the cases of before is counted as a violation: no view says that it was never met.
found_besides() {
  local searched=(fuzz --impl fake_wrong --dtype f32 --budget '200 cases' --workers 1 --out run)
  expect 1 'split_invariance VIOLATED' "${searched[@]}" --property split_invariance
  expect 1 '^asked again: reference_agreement VIOLATED' "${searched[@]}"
  python3 -c 'import json
of = [c["verdicts"] for c in json.load(open("run/run.json"))["cells"] if c["property"] == "reference_agreement"]
assert sum(v["violated"] if isinstance(v, dict) else v[1] for v in of) > 0, of' || fail 'the finding is in no cell'
  grep -q '<dt>budget<dd>200 cases' run/report.html || fail 'the page does not say the budget'
}

# FNV-1a, 64 bits.
checksum() {
  python3 -c '
import sys
h = 0xcbf29ce484222325
for b in sys.argv[1].encode(): h = ((h ^ b) * 0x100000001b3) % 2**64
print(f"{h:016x}")' "$1"
}

# Killed again and again at some moment, ten times each campaign: what was said is in the folder and
# the journal, nothing is half written, and what was left goes on.
kills() {
  local round out
  for round in $(seq "$rounds"); do
    out=run$((round / 10))
    "$lossgate" fuzz --impl fake_wrong --budget 1h --workers 1 --seed "$round" --out "$out" \
      >>"$out.said" 2>>stderr &
    local pid=$!
    sleep "$(printf '%04d' $((RANDOM % 1500)) | sed 's/^./&./')"
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    ((round % 10 == 9 || round == rounds)) && survived "$out"
  done
  echo "$rounds kills, $(cat ./*.said | grep -c VIOLATED) findings said, $(cat ./*.said | grep -c 'going on after') times gone on," \
    "$(cat ./*.said | grep -c damaged) journals with a cut line"
  [[ -n $(find . -path '*/findings/*.case') ]] || fail 'nothing was found in all this time'
}

# A campaign that was killed, in folder $1, by what it had said.
survived() {
  local file
  [[ ! -f $1/run.json ]] || grep -q '"interrupted": true' "$1/run.json" || fail "$1 was killed, and its record is whole"
  while read -r file; do
    [[ -s $file ]] || fail "$file was said and is not there"
    grep -qF "${file##*/}" "$1/journal" || fail "$file was said and is not in the journal"
  done < <(sed -nE 's/.*VIOLATED.*: ([^ ]+\.case)$/\1/p' "$1.said")
  while read -r file; do
    "$lossgate" replay "$file" --impl fake_exact >stdout 2>stderr
    (($? < 2)) || fail "$file is no case: $(cat stderr)"
  done < <(find "$1" -name '*.case' | head -n 10)
  "$lossgate" fuzz --impl fake_wrong --budget 1s --workers 1 --out "$1" >stdout 2>stderr
  (($? < 2)) || fail "$1 does not go on: $(cat stderr)"
  ! grep -q VIOLATED "$1.said" || grep -q 'red: [1-9]' stdout || fail "the findings of $1 are forgotten"
}

containment() {
  expect 1 'does_not_crash VIOLATED by fake_brittle' \
    fuzz --impl fake_brittle --budget '600 cases' --timeout 1 --workers 2 --out brittle
  grep -q 'does_not_hang VIOLATED by fake_brittle' stdout || fail 'the hang was not found'
  grep -q 'signal 6' brittle/run.json || fail 'the signal is not named'
  grep -q 'threw: out of patience' brittle/run.json || fail 'the exception is not named'
  grep -q 'no memory: threw std::bad_alloc' brittle/run.json || fail 'the allocation was not refused'
  grep -q 'exited with status 7' brittle/run.json || fail 'the exit is not named'
  # What it throws takes some sequences, and of tokens no more than one.
  local thrown
  thrown=$(grep -l '^story: does_not_crash violated by fake_brittle; made simple' brittle/findings/*.case | head -n 1)
  [[ -n $thrown ]] || fail 'the case of an exception is not made simple'
  grep -q '^shape: .*, tokens 1$' "$thrown" || fail "not minimal: $(grep '^shape' "$thrown")"
  # In a new process it can be asked again.
  expect 0 'green' fuzz --impl fake_weary --dtype f32 --budget '200 cases' --workers 1 --out weary
  local skipped
  skipped=$(sed -nE 's/.*fake_weary crashed or hung 40 times": ([0-9]+).*/\1/p' weary/run.json | head -n 1)
  ((skipped > 0 && skipped < 100)) || fail "of 200 cases $skipped were left to a process that asks no more"
  expect_no_orphan
}

# What the machine does not give ends a campaign, but not what it found; the next one goes on.
troubles() {
  expect 3 'trouble: grpo/fake_exact: failed std::bad_alloc' \
    fuzz --impl fake_exact --budget '100 cases' --memory 1 --workers 1 --out early
  # One that cannot be asked is left, the others go on.
  expect 3 'trouble: grpo/fake_wrong: failed std::bad_alloc' \
    fuzz --impl fake_exact --impl fake_wrong --budget '100 cases' --memory 1 --workers 1 --out left
  grep -q 'trouble: grpo/fake_exact: failed std::bad_alloc' stdout || fail "the other was not begun: $(cat stdout)"
  expect 1 'VIOLATED' fuzz --impl fake_wrong --budget '100 cases' --workers 1 --out cut
  expect 1 'trouble: grpo/fake_wrong: failed std::bad_alloc' \
    fuzz --impl fake_wrong --budget '200 cases' --memory 1 --workers 1 --out cut
  grep -Eq 'red: [1-9]' stdout || fail "the findings of before are not shown: $(cat stdout)"
  expect 1 'going on after .* 100 cases' fuzz --impl fake_wrong --budget '200 cases' --workers 1 --out cut
  grep -q 'trouble' stdout && fail 'what failed before is said of this run'
  :
}

shards() {
  expect 1 'VIOLATED by fake_wrong' fuzz --impl fake_exact --impl fake_wrong --dtype f32 --shard 2/2 --budget '100 cases' --out two
  expect 0 'green' fuzz --impl fake_exact --impl fake_wrong --dtype f32 --shard 1/2 --budget '100 cases' --out one
  # What cannot be read leaves nothing behind that stands in the way of the next try.
  mv two/run.json kept.json && echo '{' >two/run.json
  expect 2 'run.json' merge one two --out both
  mv kept.json two/run.json
  expect 1 '2 campaigns, 200 cases, red' merge one two --out both
  grep -q '"shard": "2/2"' two/run.json || fail 'the record does not say which share it is of'
  grep -q '"shard": ""' both/run.json || fail 'the whole is taken for a share'
  expect 2 'one/ is named twice' merge one two "$PWD/one/" --out twice
  [[ ! -e twice ]] || fail 'something was written'
  # One of two is not the whole, green or not.
  expect 3 '^1 campaign, 100 cases, not green' merge one --out single
  grep -q '^trouble: 1 of 2 shards missing: 2/2$' stdout || fail "nobody says what is missing: $(cat stdout)"
  grep -q '"campaign": \[\]' both/run.json || fail 'one of two curves is taken for that of both'
  diff <(find two/findings -name '*.case' | sort | xargs -n 1 basename) \
    <(find both/findings -name '*.case' | sort | xargs -n 1 basename) || fail 'findings are missing'
  expect 2 'both holds a campaign already' merge one --out both
  expect 1 'going on after .* 100 cases' fuzz --impl fake_wrong --budget '300 cases' --out both
}

# The array of a cluster, without the cluster; the CI's matrix has a machine for each share.
recipes() {
  local recipe=$source/ci/recipes/campaign.sbatch task
  export LOSSGATE=$lossgate LOSSGATE_BUDGET='100 cases' SLURM_ARRAY_TASK_COUNT=2
  for task in 1 2; do
    SLURM_ARRAY_TASK_ID=$task "$recipe" search --impl fake_exact --impl fake_wrong --dtype f32 >stdout 2>stderr ||
      fail "task $task ended with $?: $(cat stderr)"
  done
  "$recipe" merge >stdout 2>stderr
  [[ $? == 1 ]] || fail "merged, red findings are not red: $(cat stdout stderr)"
  grep -q '2 campaigns, 200 cases, red' stdout || fail "said instead: $(cat stdout)"
  SLURM_ARRAY_TASK_ID=3 "$recipe" search >stdout 2>stderr && fail 'a task beyond the array is taken for one of it'
  # Near the end of its time a task is told, and writes what it has.
  SLURM_ARRAY_TASK_ID=1 LOSSGATE_CAMPAIGN=told LOSSGATE_BUDGET=1h "$recipe" search --impl fake_exact >stdout 2>stderr &
  local pid=$!
  await told/shard-1/journal '"elapsed"'
  kill -TERM "$pid"
  wait "$pid" || fail "told to end, it ended with $?: $(cat stderr)"
  grep -q '"interrupted": true' told/shard-1/run.json || fail 'what was found until then is not written'
  local shards
  shards=$(sed -nE 's/.*matrix: \{shard: \[(.*)\]\}/\1/p' "$source/ci/recipes/campaign.yml" | tr -d ,)
  [[ -n $shards && $shards == "$(seq -s ' ' "$(wc -w <<<"$shards")")" ]] || fail "the matrix deals '$shards'"
}

interruption() {
  "$lossgate" fuzz --impl fake_wrong --budget 1h --workers 1 --out cut >stdout 2>stderr &
  local pid=$!
  await cut/journal '"elapsed"'
  kill -INT "$pid"
  wait "$pid"
  local status=$?
  [[ $status == 130 ]] || fail "exit status $status, not 130: $(cat stderr)"
  grep -q '"interrupted": true' cut/run.json || fail 'the record does not say so'
  grep -q '^interrupted: the same command goes on from here$' stdout || fail "nobody says how it goes on: $(cat stdout)"
}

# What nobody had the time to look into is kept as it was met.
unexplained() {
  "$lossgate" fuzz --impl fake_dwelling --dtype f32 --budget 1h --workers 1 --out met >stdout 2>stderr &
  local pid=$! file
  await asleep zzz
  kill -INT "$pid"
  wait "$pid"
  [[ $? == 130 ]] || fail 'it was not interrupted'
  grep -Eq 'VIOLATED by fake_dwelling .*: met/findings/' stdout || fail "what was met is lost: $(cat stdout stderr)"
  grep -q 'as it was met, not made simple' met/run.json || fail 'the record does not say that nobody looked into it'
  file=$(find met/findings -name '*.case' | head -n 1)
  grep -q 'as it was met' "$file" || fail "nor does the case: $(grep -A 3 '^story' "$file")"
  expect 1 'still fails' replay "$file" --impl fake_wrong
}

# A disk that takes no more, and then does: said, survived.
full() {
  "$lossgate" fuzz --impl fake_exact --budget 20s --workers 1 --out full >stdout 2>stderr &
  local pid=$!
  await full/journal '"elapsed"'
  prlimit --pid "$pid" --fsize=100:
  await stderr 'the campaign goes on'
  prlimit --pid "$pid" --fsize=unlimited:
  wait "$pid"
  local status=$?
  [[ $status == [01] ]] || fail "exit status $status: $(cat stderr)"
  grep -q 'full: File too large; the campaign goes on' stderr || fail "said instead: $(cat stderr)"
  grep -q 'full: everything is written again' stderr || fail 'nothing was written again'
  "$lossgate" fuzz --impl fake_exact --budget 1s --out full >stdout 2>stderr
  grep -q 'going on after' stdout || fail "said instead: $(cat stdout stderr)"
  grep -Eq ' [2-9] damaged lines' stdout && fail "more than the line that the disk cut: $(cat stdout)"
  find full -name '*.case' -size 0 | grep . && fail 'a file is half written'
  :
}

# What is accepted is not red in a campaign either, nor does it end one.
acceptance() {
  expect 1 'VIOLATED by fake_wrong' fuzz --impl fake_wrong --budget '200 cases' --workers 1 --out first
  expect 0 'accepted' baseline first/run.json --out accepted.txt
  expect 0 'green: 0 red findings, [1-9][0-9]* accepted' \
    fuzz --impl fake_wrong --budget '200 cases' --workers 1 --out first --baseline accepted.txt
  grep -q '"vanished": \[\]' first/run.json || fail 'a campaign says what is gone'
  echo 'grpo|*|fake_wrong|* | a fake | #1 | expires 2999-12-31' >waivers.txt
  expect 0 'VIOLATED by fake_wrong .*; waived\): second/findings' \
    fuzz --impl fake_wrong --first --budget '200 cases' --workers 1 --out second --waivers waivers.txt
  grep -q '"cases_run": 200' second/run.json || fail '--first stopped at what is accepted'
  echo 'grpo|*|fake_wrong|* | a fake | #1 | expires 2001-12-31' >waivers.txt
  expect 1 'expires 2001-12-31' fuzz --impl fake_wrong --budget '200 cases' --workers 1 --out second --waivers waivers.txt
  echo 'grpo|x|fake_wrnog|* | a fake | #1 | expires 2999-12-31' >waivers.txt
  expect 1 "fits nothing that exists: grpo.x.fake_wrnog.*: no implementation of grpo is called 'fake_wrnog'; did you mean 'fake_wrong'" \
    fuzz --impl fake_wrong --budget '200 cases' --workers 1 --out second --waivers waivers.txt
}

# All are asked before any of them is asked for long, and what a budget does not reach is said.
first_turns() {
  local both=(fuzz --impl fake_exact,fake_wrong --workers 1)
  expect 0 '^1 of 2 implementations not asked yet' "${both[@]}" --budget '1 cases' --out one
  expect 1 'VIOLATED by fake_wrong' "${both[@]}" --budget '40 cases' --out one
  grep -q 'not asked yet' stdout && fail 'what was not asked did not come first'
  expect 1 'VIOLATED by fake_wrong' "${both[@]}" --budget '100 cases' --out all
  grep -Eq '"spent".*grpo/fake_exact' all/journal || fail 'one was not asked'
}

# What a campaign in folder $1 kept and found, in its order.
told() { sed -nE 's/^[0-9a-f]{16} (\{"(kept|found)".*)/\1/p' "$1/journal"; }

# With one worker and a budget in cases, no clock has a say: a campaign that stood still for a while, which is time but no
# case, is the same. One of the searches ends its process again and again.
reproducible() {
  local searched=(fuzz --impl fake_exact,fake_wrong,fake_weary --dtype f32 --budget '600 cases' --workers 1 --seed 5)
  expect 1 'VIOLATED by fake_wrong' "${searched[@]}" --out one
  "$lossgate" "${searched[@]}" --out two >stdout 2>stderr &
  local pid=$! naps=3
  await two/journal '"elapsed"'
  while ((naps-- > 0)); do
    kill -STOP "$pid" && sleep 1.5 && kill -CONT "$pid" && sleep 0.5
  done
  wait "$pid"
  [[ $(told one | grep -c '"found"') -gt 0 ]] || fail 'nothing was found, whatever the clock says'
  diff -q <(told one) <(told two) || fail 'the same seed keeps or finds other cases'
  diff -rq one/findings two/findings || fail 'the findings differ'
  diff -rq one/corpus two/corpus || fail 'the corpora differ'
  grep -q fake_weary <(told one) || fail 'the search that ends its process kept nothing'
  expect 1 'VIOLATED by fake_wrong' "${searched[@]}" --seed 6 --out other
  ! diff -q <(told one) <(told other) >differences || fail 'another seed draws the same'
}

# With the real implementations: every founding fault within a short campaign, nothing of a sound one. None that is
# faulty is of LibTorch, which takes every process most of a second to open.
founding() {
  local losses='sparse_jsd jsd teacher_payload prompt_dedup grpo linear_grpo kl_penalty advantage_scaling value_clip'
  local name loss rest faulty=0
  "$lossgate" list implementations >implementations
  while read -r name loss rest; do
    [[ " $losses " == *" $loss "* ]] || continue
    LOSSGATE_TORCH_LIBRARY=none \
      expect 1 'VIOLATED' fuzz "$loss" --impl "$name" --first --budget '5000 cases' --workers 1 --out "$loss-$name"
    ((++faulty))
  done < <(sed '1,/^faulty/d' implementations)
  ((faulty >= 60)) || fail "only $faulty faulty implementations were searched"
  # What only long cases show, though the worker is called away from its first stretches.
  expect 1 'wrong beyond a length' \
    fuzz value_clip --impl beyond_grid,eager,eager_native --first --budget '10000 cases' --workers 1 --out length
  # shellcheck disable=SC2086
  expect 0 'green: 0 red findings' fuzz $losses --budget '2000 cases' --workers 2 --out sound
}

"$test"
exit "$failures"
