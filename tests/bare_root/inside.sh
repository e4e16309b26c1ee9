#!/usr/bin/env bash
# The part of run.sh that runs in the bare root: installs git and make, runs `make demo` and `make test`, and writes what
# became of them to /root/logs/summary.
#
#   inside.sh JOBS
set -euo pipefail
jobs=$1
logs=/root/logs
summary=$logs/summary
failed=

# Prints "NAME: REASON" for each test that skipped, from ctest's output and its log. The status is 1 if one gives no reason.
skipped_tests() { # OUTPUT LOG
  awk '
    FNR == NR {
      if (match($0, /^\t *[0-9]+ - .* \(Skipped\)$/)) {
        sub(/^\t *[0-9]+ - /, "")
        sub(/ \(Skipped\)$/, "")
        silent[$0] = 1
      }
      next
    }
    function skips(name, why) {
      print "  " name ": " why
      delete silent[test]
    }
    /^[0-9]+\/[0-9]+ Test: / { test = $0; sub(/^[0-9]+\/[0-9]+ Test: /, "", test); reason = "" }
    # GoogleTest: "FILE:LINE: Skipped", the reason up to an empty line, and the name.
    /^\[ RUN      \] / { reason = "" }
    reading && /^$/ { reading = 0 }
    reading { reason = reason (reason == "" ? "" : " ") $0 }
    /: Skipped$/ { reading = 1; reason = "" }
    /^\[  SKIPPED \] .*\([0-9]+ ms\)$/ && reason != "" {
      name = substr($0, 14)
      sub(/(, where .*)? \([0-9]+ ms\)$/, "", name)
      skips(name, reason)
      reading = 0
    }
    # Scripts.
    /^(skipped|SKIPPED): / { sub(/^[^:]*: /, ""); skips(test, $0) }
    END {
      for (test in silent) { print "  " test ": gives no reason"; bad = 1 }
      exit bad
    }' "$1" "$2"
}

# Runs one target and notes how it went.
try_make() { # TARGET
  local start=$SECONDS outcome=passed
  echo "make $1"
  make "$1" JOBS="$jobs" 2>&1 | tee "$logs/$1.log" || outcome=FAILED
  [ "$outcome" = passed ] || failed=1
  echo "make $1: $outcome in $((SECONDS - start)) s" >>"$summary"
}

echo 'Installing git and make'
export DEBIAN_FRONTEND=noninteractive
{ apt-get -q update && apt-get -q -y --no-install-recommends install git make; } >"$logs/apt.log" 2>&1 || {
  cat "$logs/apt.log" >&2
  exit 1
}
unset DEBIAN_FRONTEND

cd /root/blindfuse
echo "Debian $(cat /etc/debian_version) with $(dpkg-query -f '.\n' -W | wc -l) packages, git and make among them" >"$summary"
try_make demo
try_make test
cp build/Testing/Temporary/LastTest.log "$logs/tests.log" || : >"$logs/tests.log"
skips=$(skipped_tests "$logs/test.log" "$logs/tests.log") || failed=1
if [ -n "$skips" ]; then
  printf '%s tests skipped:\n%s\n' "$(wc -l <<<"$skips")" "$skips" >>"$summary"
fi
sed -n '/^The following tests FAILED:/,/^$/p' "$logs/test.log" >>"$summary"
[ -z "$failed" ]
