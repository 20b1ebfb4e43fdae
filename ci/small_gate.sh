# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of what a user brings, with ci/expect.sh.
source "$source/ci/expect.sh"

# STATUS PATTERN ARGUMENTS...: a small gate over lossgate.toml.
gate() {
  local status=$1 pattern=$2
  shift 2
  expect "$status" "$pattern" gate --config lossgate.toml --corpus empty --cases 24 --jobs 1 "$@"
}
