#!/usr/bin/env bash
# What `make bare-root` runs: targets of the Makefile on a fresh Debian that has git and make in addition, and nothing else
# of this machine. debootstrap makes the root in build/bare-root/SUITE/root. It is removed at the end; the logs, next to it,
# stay.
#
# All mounts are made in a mount namespace and all processes run in a PID namespace. Both vanish when this script ends,
# however it ends.
#
#   run.sh SUITE JOBS TARGET...
set -euo pipefail

fail() { echo "make bare-root: $*" >&2; exit 1; }

here=$(cd "$(dirname "$0")" && pwd -P)
source=$(cd "$here/../.." && pwd -P)
suite=$1
jobs=$2
shift 2
work=$source/build/bare-root/$suite
root=$work/root
logs=$work/logs

check_machine() {
  [ "$(id -u)" = 0 ] || fail 'debootstrap and mounts need root; run: sudo make bare-root'
  case $source in *[[:space:]]*) fail "debootstrap refuses paths with spaces: $source" ;; esac
  if ! command -v debootstrap >/dev/null; then
    command -v apt-get >/dev/null || fail 'debootstrap is missing; install it'
    echo 'Installing debootstrap'
    local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends debootstrap)
    "${install[@]}" >/dev/null 2>&1 || { apt-get update -q && "${install[@]}"; } >/dev/null ||
      fail 'debootstrap could not be installed'
  fi
  unshare --mount --pid --fork true || fail 'unshare --mount --pid is not permitted on this machine'
}

# Nothing is removed through a mount. None is visible outside the namespace; if there is one nevertheless, all stays.
remove_root() {
  [ -e "$root" ] || return 0
  if awk -v root="$root" '$5 == root || index($5, root "/") == 1 { found = 1 } END { exit !found }' \
    /proc/self/mountinfo; then
    fail "$root was not removed: something is mounted in it (see findmnt)"
  fi
  rm -rf --one-file-system -- "$root"
}

namespace=
# shellcheck disable=SC2317  # the trap calls it
clean_up() {
  if [ -n "$namespace" ]; then
    kill -KILL "$namespace" 2>/dev/null || true
    wait "$namespace" 2>/dev/null || true
  fi
  remove_root
}

main() { # TARGET...
  check_machine
  mkdir -p "$work"
  exec 9>"$work/lock"
  flock --nonblock 9 || fail "another run uses $work"
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  remove_root
  rm -rf --one-file-system -- "$logs"
  mkdir -p "$root" "$logs"

  commit=$(git -C "$source" rev-parse HEAD)
  [ -z "$(git -C "$source" status --porcelain)" ] || echo 'Uncommitted changes are left out.'
  echo "Commit $commit, $jobs jobs, in $root"
  # In the background, so that signals are handled while it runs.
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc \
    "$here/enter.sh" "$suite" "$root" "$logs" "$source" "$commit" "$jobs" "$@" </dev/null 9>&- &
  namespace=$!
  status=0
  wait "$namespace" || status=$?
  namespace=
  echo
  [ ! -s "$logs/summary" ] || cat "$logs/summary"
  echo "The logs are in $logs."
  [ "$status" = 0 ] || status=1
  if [ "$status" = 0 ]; then echo "bare root of $suite: PASSED"; else echo "bare root of $suite: FAILED"; fi
  # Bash reads a script while it runs it: not from here on, should the file have changed.
  exit "$status"
}

main "$@"
