#!/usr/bin/env bash
# The part of run.sh that runs in the bare root: installs git and make, makes the targets, and writes what became of them
# to /root/logs/summary.
#
#   inside.sh JOBS TARGET...
set -euo pipefail
jobs=$1
shift
logs=/root/logs
summary=$logs/summary
failed=

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

# The Debian package is installed in this root, since it vanishes.
export BLINDFUSE_MACHINE_IS_A_COPY=1
cd /root/blindfuse
echo "Debian $(cat /etc/debian_version) with $(dpkg-query -f '.\n' -W | wc -l) packages, git and make among them" >"$summary"
for target in "$@"; do
  try_make "$target"
  # Tests say which of them skipped and why, which failed, and how many passed.
  grep -E '^(skipped|failed): |^[0-9]+ passed, ' "$logs/$target.log" >>"$summary" || true
done
if grep -q ': no reason given$' "$summary"; then failed=1; fi
[ -z "$failed" ]
