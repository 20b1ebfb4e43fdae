#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# When did a verdict flip? Installs released trainers, each alone in a folder, runs the gate on their unmodified
# losses, and writes a page with one column per release:
#   ci/upstream.sh PROJECT==VERSION... [-- FLAGS OF lossgate gate]
# PROJECT is a name on the package index, and a file in impl/external/upstream or its line "# projects";
# liger-kernel+triton is liger-kernel with the subjects of another file. What the interpreter has in that version,
# torch above all, is not installed.
# LOSSGATE           the command; else the one in build
# LOSSGATE_PYTHON    an interpreter with torch and numpy; else that of .venv
# LOSSGATE_RELEASES  where releases are kept
# LOSSGATE_OUT       where results go; else run/upstream
# LOSSGATE_DEVICE    where the losses run, as torch names it; else cpu
# Exit status: 0 where all gates came to a verdict, whatever it is; else that of the last that did not.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${LOSSGATE_PYTHON:-$PWD/.venv/bin/python}
releases=${LOSSGATE_RELEASES:-${XDG_CACHE_HOME:-$HOME/.cache}/lossgate/releases}
out=${LOSSGATE_OUT:-run/upstream}
adapters=impl/external/upstream
export LOSSGATE_DEVICE=${LOSSGATE_DEVICE:-cpu}
export PYTHONDONTWRITEBYTECODE=1

say() { echo "upstream: $*" >&2; }
stop() { say "$*"; exit 2; }

command_built() {
  local preset
  for preset in default no-torch; do
    [[ -x build/$preset/bin/lossgate ]] && echo "build/$preset/bin/lossgate" && return
  done
  stop "no lossgate in build; run ci/gate.sh first, or say LOSSGATE=COMMAND"
}

# PROJECT: the file with its subjects. Two names of one project share a file, which lists them.
subjects_of() {
  local file
  file=$(awk -v name="$1" '/^# projects / { for (i = 3; i <= NF; i++) if ($i == name) print FILENAME }' "$adapters"/*.toml)
  [[ $file ]] || file=$adapters/$1.toml
  [[ -f $file ]] || stop "no adapter for $1; there are $(cd "$adapters" && echo *.toml)"
  echo "$file"
}

# PROJECT==VERSION: whether the interpreter has it already, as it has torch.
in_interpreter() {
  "$python" -c 'import importlib.metadata as m, sys; sys.exit(m.version(sys.argv[1]) != sys.argv[2])' \
    "${1%%==*}" "${1##*==}" 2>/dev/null
}

# PROJECT==VERSION FOLDER: a folder is complete or absent.
install_release() {
  [[ -d $2 ]] && return
  say "installing $1"
  mkdir -p "$releases"
  local fresh
  fresh=$(mktemp -d "$releases/incomplete.XXXXXX")
  "$python" -m pip --disable-pip-version-check install --quiet --no-deps --no-compile --ignore-requires-python \
    --target "$fresh" "$1" || { rm -rf "$fresh"; stop "cannot install $1"; }
  chmod 755 "$fresh"
  mv -T "$fresh" "$2"
}

specs=()
while (($#)) && [[ $1 != -- ]]; do
  [[ $1 =~ ^[A-Za-z0-9._+-]+==[A-Za-z0-9._+!-]+$ ]] || stop "$1 is not PROJECT==VERSION"
  specs+=("$1")
  shift
done
(($#)) && shift
((${#specs[@]})) || stop "say which releases: PROJECT==VERSION..."
lossgate=${LOSSGATE:-$(command_built)}
[[ -x $python ]] || stop "no interpreter $python; run ci/setup.sh, or say LOSSGATE_PYTHON=INTERPRETER"

worst=0
columns=()
mkdir -p "$out"
rm -f "$out/page.md"
for spec in "${specs[@]}"; do
  project=${spec%%==*} version=${spec##*==}
  distribution=${project%%+*}
  file=$(subjects_of "$project")
  mapfile -t modules < <(sed -n 's/^entry = "py:\([^:]*\)\.py:.*/\1/p' "$file" | sort -u)
  results=$out/$project-$version
  path=()
  for package in "$distribution==$version" $(sed -n 's/^# needs //p' "$file"); do
    in_interpreter "$package" && continue
    path+=("$releases/${package/==/-}")
    install_release "$package" "${path[-1]}"
  done
  mkdir -p "$results"
  "$python" "$adapters/select_release.py" "$file" "$version" "$LOSSGATE_DEVICE" "$python" "${path[@]}" >"$results/subjects.toml"
  say "$spec: files under test"
  PYTHONPATH=$(IFS=: && echo "${path[*]}") "$python" "$adapters/release.py" "${modules[@]}" | tee "$results/files.txt"
  status=0
  "$lossgate" gate --config "$results/subjects.toml" --out "$results" "$@" || status=$?
  case $status in
    0 | 1) columns+=("$project $version=$results") ;;
    2 | 130) exit "$status" ;;  # what was asked is wrong, or enough was seen
    *) say "$spec: the gate ended with $status"; worst=$status ;;
  esac
done

if ((${#columns[@]})); then
  "$python" "$adapters/flips.py" regressions/upstream/JUDGED.md "${columns[@]}" >"$out/page.md"
  say "the page is $out/page.md"
fi
exit "$worst"
