#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that every include line keeps to the layers:
#   reference/spec < { reference, impl, corpora } < properties < { fuzz, regressions, report } < ci
# A line of the table: folder | our headers that it may include | headers of others. The longest folder
# wins. A name ends in / for a whole folder. A folder may include itself and the standard library; a
# test, a test's double (fake_*, given_*) or a benchmark also what the line `folder_test` says.
#   ci/layers.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

read -r -d '' table <<'EOT' || true
reference/spec   | |
reference        | reference/spec/ | Eigen/ immintrin.h mpreal.h nlohmann/
impl             | reference/spec/ | nlohmann/ POSIX
impl/cuda        | reference/spec/ impl/ | cuda sys/mman.h
impl/cuda/fused  | reference/spec/ impl/ | stddef.h stdint.h
impl/external    | reference/spec/ impl/ corpora/ | toml++/ nlohmann/ POSIX
impl/external/c  | reference/spec/ impl/ corpora/ | link.h stdint.h nlohmann/ POSIX
impl/torch       | reference/spec/ impl/ | ATen/ torch/ c10/ POSIX
corpora          | reference/spec/ | nlohmann/ POSIX
properties       | reference/ impl/implementation.h | nlohmann/
fuzz             | reference/ impl/implementation.h properties/ corpora/ | rapidcheck
fuzz/targets     | reference/ impl/ corpora/ fuzz/ report/ ci/ | nlohmann/
regressions      | reference/spec/ impl/implementation.h impl/catalog.h properties/ corpora/ |
report           | reference/spec/ impl/implementation.h properties/ | nlohmann/ fmt/ POSIX
ci/wheel         | | dlfcn.h link.h sys/
ci               | reference/ impl/ properties/ corpora/ fuzz/ regressions/ report/ | CLI/ nlohmann/ fmt/ POSIX
reference_test   | reference/ | boost/
impl_test        | reference/spec/ impl/ |
properties_test  | reference/ impl/ corpora/ |
fuzz_test        | reference/ impl/ corpora/ properties/ |
regressions_test | reference/ impl/ corpora/ properties/ |
report_test      | reference/ impl/ properties/ | nlohmann/
EOT

find reference impl corpora properties fuzz regressions report ci \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z |
  xargs -0 awk -v table="$table" '
    BEGIN {
      posix = "unistd.h fcntl.h dlfcn.h malloc.h poll.h sched.h signal.h spawn.h sys/"
      lines = split(table, line, "\n")
      for (i = 1; i <= lines; i++) {
        split(line[i], part, "|")
        gsub(/ /, "", part[1])
        gsub(/POSIX/, posix, part[3])
        ours[part[1]] = part[2]
        others[part[1]] = part[3]
      }
    }
    FNR == 1 {
      folder = FILENAME
      do sub(/\/?[^\/]*$/, "", folder); while (folder != "" && !(folder in ours))
      top = FILENAME
      sub(/\/.*/, "", top)
      allowed_ours = ours[folder] " " folder "/"
      allowed_others = others[folder]
      if (FILENAME ~ /_(test|benchmark)\.cpp$|\/(fake|given)_/) {
        allowed_ours = allowed_ours " " ours[top "_test"]
        allowed_others = allowed_others " gtest/ gmock/ rapidcheck benchmark/ " others[top "_test"]
      }
    }
    function allows(list, name,    word, n, i) {
      n = split(list, word, " ")
      for (i = 1; i <= n; i++) if (index(name, word[i]) == 1) return 1
      return 0
    }
    function complain(why) {
      print FILENAME ":" FNR ": " folder " may not include " why
      failures = 1
    }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
      split($0, quoted, "\"")
      if (!allows(allowed_ours, quoted[2])) complain("\"" quoted[2] "\"")
    }
    /^[ \t]*#[ \t]*include[ \t]*</ {
      name = $0
      sub(/^[^<]*</, "", name)
      sub(/>.*/, "", name)
      if (name !~ /^[a-z_0-9]+$/ && !allows(allowed_others, name)) complain("<" name ">")
    }
    folder == "reference/spec" && !/^ *\/\// && /long double/ {
      print FILENAME ":" FNR ": device code would read long double as double"
      failures = 1
    }
    END { exit failures }'
