#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what lossgate is built from, on Debian 12 or Ubuntu 24.04: Debian packages through apt (as
# root, or through sudo), and LibTorch with pytest into .venv, in the repository. Nothing else is
# touched. Does only what is missing, one line a step; a second run has nothing to do.
# LOSSGATE_TORCH=OFF leaves .venv away.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(clang-19 libclang-rt-19-dev lld-19 cmake ninja-build ccache
  libeigen3-dev libmpfrc++-dev libboost-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev
  libcli11-dev nlohmann-json3-dev libfmt-dev libtomlplusplus-dev
  libjs-d3)
[[ ${LOSSGATE_TORCH:-ON} == OFF ]] || packages+=(python3-venv ca-certificates)

say() { echo "setup: $*"; }

# quietly COMMAND...: runs it; its output is shown only where it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if ((status)); then
    cat "$log" >&2
    say "failed: $*" >&2
  fi
  rm -f "$log"
  return "$status"
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      echo "$package"
  done
}

install_packages() {
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
  if ((EUID)); then
    if ! command -v sudo >/dev/null; then
      say "neither root nor sudo; as root, run: apt-get install --no-install-recommends $*" >&2
      exit 1
    fi
    apt=(sudo "${apt[@]}")
  fi
  say "reading the package lists"
  quietly "${apt[@]}" update
  say "installing $# Debian packages: $*"
  quietly "${apt[@]}" install --no-install-recommends "$@"
}

# The wheel's Python half is linked to CUDA libraries (3 GB) that a CPU never calls. Each of them that
# this machine lacks gets an empty library of its name in the last folder that the loader searches, so
# that real ones, once installed, are taken first. Empty libraries load only if names are bound when
# first called, hence the .pth file.
stand_in_for_cuda() {
  local site=$1 lib=$1/torch/lib name
  ldd "$lib/libtorch_python.so" | awk '/not found/ {print $1}' | sort -u | while read -r name; do
    clang-19 -shared -nostdlib -fuse-ld=lld -Wl,-soname,"$name" -x c /dev/null -o "$lib/$name"
  done
  echo 'import os, sys; sys.setdlopenflags(os.RTLD_LAZY)' >"$site/bind_when_called.pth"
}

install_torch() {
  local site
  say "making .venv with $(/usr/bin/python3 -V)"
  quietly /usr/bin/python3 -m venv .venv
  say "installing LibTorch, what it needs on a CPU, and pytest (ci/requirements.txt, 1.4 GB)"
  quietly .venv/bin/python -m pip --disable-pip-version-check install --no-deps --no-compile \
    --progress-bar off -r ci/requirements.txt
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  quietly stand_in_for_cuda "$site"
  # Written down compiled: whoever forbids Python to write would compile torch at every import.
  quietly env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -c 'import pytest, torch; torch.ones(1)'
  cp ci/requirements.txt .venv/installed.txt
}

mapfile -t missing < <(missing_packages)
((${#missing[@]} == 0)) || install_packages "${missing[@]}"
if [[ ${LOSSGATE_TORCH:-ON} != OFF ]]; then
  cmp -s ci/requirements.txt .venv/installed.txt || install_torch
fi
say "everything is there"
