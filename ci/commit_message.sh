#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the form of commit subjects: `folder: imperative, lower case`, at most 72 characters.
#   ci/commit_message.sh FILE      the message in a file, as git's commit-msg hook is called
#   ci/commit_message.sh A..B      every commit in a range
set -euo pipefail

folders='reference|impl|corpora|properties|fuzz|regressions|report|ci|docs'
complaints=0

complain() {
  echo "commit_message: '$1': $2" >&2
  complaints=1
}

check() {
  local subject=$1 text word
  ((${#subject} <= 72)) || complain "$subject" "${#subject} characters, at most 72 are wanted"
  if ! [[ $subject =~ ^($folders)(/[a-z_]+)*:\ (.+)$ ]]; then
    complain "$subject" "wanted 'folder: what it does', folder one of ${folders//|/, }"
    return 0
  fi
  text=${BASH_REMATCH[3]}
  word=${text%% *}
  [[ $word =~ ^[a-z] ]] || complain "$subject" "'$word' does not begin in lower case"
  [[ $text != *. ]] || complain "$subject" "a subject ends without a full stop"
  # Not a grammar: the words that slip in.
  [[ ! $word =~ ^(add|fix|chang|updat|remov|us|mak|mov|renam|writ|test|clean)(s|es|ed|ing)$ ]] ||
    complain "$subject" "'$word' is not an imperative"
}

if [[ ${1:-} == *..* ]]; then
  while read -r subject; do check "$subject"; done < <(git log --no-merges --format=%s "$1")
else
  check "$(head -n 1 "${1:?a file or a range of commits}")"
fi
exit "$complaints"
