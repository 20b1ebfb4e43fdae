#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what verdicts are worth, and writes ci/EVIDENCE.md:
#   ci/evidence.sh [--quick | --full] [--seed N] [--loss ID] [--cases N] [KIND...]
# KIND is one of alarms, bias, bounds, buckets, filter, null_answers, recall, sensitivity, baselines, gates, witnesses, mutation; without it
# all, the last two in --full alone. --quick, the default, takes a few minutes on two cores; --full takes a night, and goes on
# where it was when it is stopped. What is not measured stays on the page as it was measured last, with its commit.
# --loss and --cases say of which losses, and of each loss and dtype how many, `alarms` asks: 10^6 of a cheap loss take minutes.
# Runs of `--full alarms` and `--full gates` are kept in ci/evidence/{alarms,gates}.json, one for each seed, and count together.
# LOSSGATE_BUILD     a build folder to use as it is; else that of the preset is set up and built
# LOSSGATE_EVIDENCE  where records are kept; else run/evidence
set -euo pipefail
cd "$(dirname "$0")/.."
records=${LOSSGATE_EVIDENCE:-run/evidence}
python=.venv/bin/python

stop() {
  echo "evidence: $*" >&2
  exit 2
}

# Kind $1, which the script $2 measures; what else it is told follows.
by_python() {
  local kind=$1 script=$2
  shift 2
  "$python" "$script" --out "$records" --lossgate "$build/bin/lossgate" --commit "$(git describe --always --dirty --tags)" \
    --command "ci/evidence.sh $effort $kind${seed[*]:+ ${seed[*]}}" "$effort" "${seed[@]}" "$@"
}

# What people use today needs torch, and Hypothesis, which .venv does not hold.
baselines() {
  local packages=$records/python
  if [[ ! -d $packages/hypothesis ]]; then
    "$python" -m pip --disable-pip-version-check install --quiet --no-compile --target "$packages" \
      -r ci/evidence/baselines/requirements.txt
  fi
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$packages by_python baselines ci/evidence/baselines/measure.py \
    --evidence "$build/bin/lossgate_evidence"
}

# The gate itself, with other seeds.
gates() {
  by_python gates ci/evidence/run_gates.py
}

# Installs the releases that it asks.
witnesses() {
  by_python witnesses ci/evidence/ask_releases.py
}

# Changes a clone of the last commit in the tenth of all places that the seed names, 11 the first again; compiles all changes at
# once, and wakes one after the other.
mutation() {
  local python=/usr/bin/python3 part=$(((${seed[1]:-1} - 1) % 10 + 1)) commit
  local field=$records/mutation/$part
  commit=$(git describe --always --tags)
  "$python" -c 'import clang.cindex' 2>/dev/null || stop "mutation needs the package python3-clang-19"
  if [[ ! -e $field/build/mutants.json || $(git -C "$field/tree" rev-parse HEAD) != "$(git rev-parse HEAD)" ]]; then
    rm -rf "$field"
    git clone --quiet . "$field/tree"
    field=$(realpath "$field")
    cmake --preset no-torch -S "$field/tree" -B "$field/build" --log-level=WARNING -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
      -DCMAKE_CXX_FLAGS="-D_GLIBCXX_ASSERTIONS -include $PWD/ci/mutants/mutant.h" >/dev/null
    "$python" ci/mutants/plant.py "$field/tree" "$field/build" "$part"
  fi
  cmake --build "$field/build" --target reference_test properties_test regressions_test
  "$python" ci/mutants/measure.py --build "$field/build" --out "$records" --full --commit "$commit" \
    --command "ci/evidence.sh --full --seed $part mutation"
}

counts=(alarms bias bounds buckets filter null_answers recall sensitivity)  # in one program of ours
long=(witnesses mutation)
short=(baselines gates)
all=("${counts[@]}" "${short[@]}" "${long[@]}")
effort=--quick
kinds=()
seed=()
asked=()
while (($#)); do
  case $1 in
    --quick | --full) effort=$1 ;;
    --seed) seed=(--seed "${2:?--seed takes a number}"); shift ;;
    --loss | --cases) asked+=("$1" "${2:?$1 takes a value}"); shift ;;
    -*) stop "unknown flag $1; there are --quick, --full, --seed N, --loss ID and --cases N" ;;
    *) kinds+=("$1") ;;
  esac
  shift
done

if ((${#kinds[@]} == 0)); then
  kinds=("${counts[@]}" "${short[@]}")
  [[ $effort == --full ]] && kinds+=("${long[@]}")
fi
counted=()
for kind in "${kinds[@]}"; do
  [[ " ${all[*]} " == *" $kind "* ]] || stop "unknown kind of evidence '$kind'; there are ${all[*]}"
  [[ " ${counts[*]} " == *" $kind "* ]] && counted+=("$kind")
done

build=${LOSSGATE_BUILD:-}
if [[ ! $build && ${kinds[*]} != mutation ]]; then
  preset=default
  [[ ${LOSSGATE_TORCH:-ON} == OFF ]] && preset=no-torch
  ./ci/setup.sh
  cmake --preset "$preset" --log-level=WARNING >/dev/null
  cmake --build --preset "$preset" --target lossgate_evidence_command lossgate
  build=build/$preset
fi
[[ -x $python ]] || python=python3

((${#counted[@]})) && "$build/bin/lossgate_evidence" "$effort" "${seed[@]}" "${asked[@]}" --out "$records" "${counted[@]}"
for kind in "${short[@]}" "${long[@]}"; do
  [[ " ${kinds[*]} " == *" $kind "* ]] && "$kind"
done
for kind in alarms gates; do
  [[ $effort == --full && " ${kinds[*]} " == *" $kind "* ]] &&
    "$python" ci/evidence/kept_runs.py "$records/$kind.json" "ci/evidence/$kind.json"
done
"$python" ci/evidence/page.py "$records" ci/EVIDENCE.md >"$records/EVIDENCE.md.new"
mv "$records/EVIDENCE.md.new" ci/EVIDENCE.md
echo "evidence: the page is ci/EVIDENCE.md"
