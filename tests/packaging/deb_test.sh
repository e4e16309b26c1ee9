#!/usr/bin/env bash
# Builds the Debian package from a build folder, looks into it, and installs, runs, removes and purges it in a throw-away
# copy of this machine: an overlay of its root that lives in memory, seen by this test alone. Exit status 77: not here.
#
#   deb_test.sh BUILD_FOLDER [CPACK]
#
# With BLINDFUSE_MACHINE_IS_A_COPY set, this machine itself is thrown away, as a bare root is: the package is installed in
# it, and the test does not skip.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
cpack=${2:-cpack}

fail() { echo "FAILED: $*" >&2; exit 1; }
skip() {
  [ -z "${BLINDFUSE_MACHINE_IS_A_COPY:-}" ] || fail "$*"
  echo "SKIPPED: $*"
  exit 77
}

for program in "$cpack" dpkg dpkg-deb dpkg-shlibdeps file; do
  command -v "$program" >/dev/null || skip "there is no $program (Debian: cmake, dpkg-dev, file)"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cpack" --config "$build/CPackConfig.cmake" -B "$work" >"$work/cpack.log" 2>&1 || {
  cat "$work/cpack.log" >&2
  fail 'cpack'
}
package=$(echo "$work"/blindfuse_*.deb)
[ -f "$package" ] || fail 'cpack made no package'
echo "built $(basename "$package"), $(stat -c %s "$package") bytes"

dpkg-deb --contents "$package" | awk '{ print $1, $2, $6 }' >"$work/contents"
holds() { # MODE PATH
  grep -qxF -- "$1 root/root ./$2" "$work/contents" || fail "the package does not hold $2 with $1, of root"
}
holds -rwxr-xr-x usr/bin/blindfuse
holds -rwxr-xr-x usr/bin/blindfuse-client
holds -rw-r--r-- usr/lib/systemd/system/blindfuse.service
holds -rw-r--r-- usr/lib/systemd/system/blindfuse-gpu-devices.service
holds -rw-r--r-- etc/blindfuse/blindfuse.conf
holds -rw-r--r-- usr/share/doc/blindfuse/copyright
holds -rw-r--r-- usr/share/doc/blindfuse/changelog.Debian.gz
for document in LICENSE NOTICE README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/THREAT_MODEL.md docs/OPERATING.md docs/images/page.png \
  docs/applications/safe-browsing.md docs/examples/private_lookups.py; do
  holds -rw-r--r-- "usr/share/doc/blindfuse/$document"
done
for example in gpu.conf nginx.conf alerts.yml blindfuse.json; do
  holds -rw-r--r-- "usr/share/doc/blindfuse/examples/$example"
done
for program in blindfuse blindfuse-client; do
  holds -rw-r--r-- "usr/share/bash-completion/completions/$program"
done
for page in "$here"/../../host/packaging/man/*.[15]; do
  holds -rw-r--r-- "usr/share/man/man${page##*.}/$(basename "$page").gz"
done
dpkg-deb --extract "$package" "$work/extracted"
documents=$work/extracted/usr/share/doc/blindfuse
"$here/licence_test.py" --copyright "$documents/copyright" || fail 'the copyright file does not say the licence'
for file in LICENSE NOTICE; do
  cmp "$here/../../$file" "$documents/$file" || fail "the package has another $file than the source"
done
"$here/links_test.py" "$documents" || fail 'the installed documents have links that lead nowhere'
! grep -v ' root/root ' "$work/contents" || fail 'the package holds what is not of root'
! grep -E '^[^ ]{5}w|^[^ ]{8}w|^[^ ]*[sS]' "$work/contents" || fail 'the package holds what others may write to, or setuid'
! grep -E ' \./(usr/local|var|run|tmp)' "$work/contents" || fail 'the package holds what it should make, or not at all'
depends=$(dpkg-deb --field "$package" Depends)
for needed in adduser libc6 libssl3; do
  grep -qE "(^|, )$needed( |,|\$)" <<<"$depends" || fail "the package does not depend on $needed but on: $depends"
done

if command -v lintian >/dev/null; then
  # Root is told that it should not; everything else of it is shown, and errors end the test.
  lintian --fail-on error "$package" 2>&1 | grep -v '^running with root' ||
    [ "${PIPESTATUS[0]}" = 0 ] || fail 'lintian found errors'
else
  echo 'lintian is not here, and has not looked at it'
fi

[ "$(id -u)" = 0 ] || skip 'the package is as it should be, but only root can install it'
dpkg-query -W blindfuse >/dev/null 2>&1 && skip 'the package is installed here, and is not tried on top of that'
if [ -n "${BLINDFUSE_MACHINE_IS_A_COPY:-}" ]; then
  cp "$here/installed_test.sh" "$here/service_test.py" "$work"
  # shellcheck disable=SC2016  # expanded inside
  unshare --mount bash -euc '
    mount --bind "$1" /mnt
    for folder in run tmp; do mount -t tmpfs -o mode=1777 tmpfs "/$folder"; done
    cp "/mnt/$2" /mnt/installed_test.sh /mnt/service_test.py /tmp
    /tmp/installed_test.sh "/tmp/$2"
  ' - "$work" "$(basename "$package")" </dev/null
  exit
fi
# shellcheck disable=SC2016  # expanded inside
mounts='
  root=$1/memory/root
  mkdir -p "$1/memory"
  mount -t tmpfs tmpfs "$1/memory"
  mkdir "$1"/memory/{upper,work,root}
  mount -t overlay overlay -o "lowerdir=/,upperdir=$1/memory/upper,workdir=$1/memory/work" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  for folder in run tmp; do mount -t tmpfs -o mode=1777 tmpfs "$root/$folder"; done
  chroot "$root" dpkg --version >/dev/null
'
# All of it vanishes with the namespace.
in_copy() { unshare --mount --pid --fork --kill-child bash -euc "$mounts$1" - "$work" "$package" "$here" </dev/null; }
in_copy '' 2>"$work/mounts.log" ||
  skip "the package is as it should be, but there is no copy to install it in: $(tail -n 1 "$work/mounts.log")"
# shellcheck disable=SC2016
in_copy '
  cp "$2" "$3/installed_test.sh" "$3/service_test.py" "$root/tmp"
  chroot "$root" /tmp/installed_test.sh "/tmp/$(basename "$2")"
'
