#!/usr/bin/env bash
# The part of deb_test.sh that changes the machine: root, in a copy that vanishes. Installs the package, runs what its unit
# says, removes and purges it.
#
#   installed_test.sh PACKAGE
set -euo pipefail
cd /tmp
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
umask 022

package=$1
config=/etc/blindfuse/blindfuse.conf
unit=/lib/systemd/system/blindfuse.service
calls=/tmp/systemctl.calls

fail() { echo "FAILED: $*" >&2; exit 1; }
is() { # WHAT EXPECTED ACTUAL
  [ "$2" = "$3" ] || fail "$1: expected '$2', is '$3'"
}
as_service() { setpriv --reuid=blindfuse --regid=blindfuse --init-groups --no-new-privs "$@"; }
dpkg_quietly() { dpkg --no-triggers "$@" >dpkg.log 2>&1 || { cat dpkg.log >&2; fail "dpkg $*"; }; }

# A systemd that does nothing and remembers what it was asked for.
[ ! -e /usr/sbin/policy-rc.d ] || rm /usr/sbin/policy-rc.d
mkdir -p /run/systemd/system
rm -f /usr/bin/systemctl
cat >/usr/bin/systemctl <<STUB
#!/bin/sh
echo "\$*" >>$calls
case "\$*" in *is-active*|*is-enabled*) [ -e /tmp/is-active ] ;; *show*) echo LoadState=loaded ;; esac
STUB
chmod 755 /usr/bin/systemctl
: >"$calls"

dpkg_quietly --install "$package"
is 'state of the package' 'install ok installed' "$(dpkg-query -W -f '${Status}' blindfuse)"
is 'home and shell of the user' '/nonexistent:/usr/sbin/nologin' "$(getent passwd blindfuse | cut -d: -f6-)"
[ "$(id -u blindfuse)" -lt 1000 ] || fail 'the user is no system user'
is 'groups of the user' blindfuse "$(id -Gn blindfuse)"
is 'folder of databases' 'blindfuse:blindfuse 750' "$(stat -c '%U:%G %a' /var/lib/blindfuse)"
is 'configuration' 'root:root 644' "$(stat -c '%U:%G %a' "$config")"
is 'conffiles' "$config" "$(dpkg-query -W -f '${Conffiles}' blindfuse | awk 'NF { print $1 }')"
is 'version' "$(dpkg-query -W -f '${Version}' blindfuse | sed 's/-[^-]*$//')" "$(blindfuse --version | sed -n '1s/.* //p')"
grep -q daemon-reload "$calls" || fail 'systemd was not told of the unit'
! grep -E '(^| )(start|restart|enable)( |$)' "$calls" || fail 'the service was started or enabled without a database'
if command -v systemd-analyze >/dev/null; then
  # It calls man for the pages that the unit names.
  man_pages=no
  ! command -v man >/dev/null || man_pages=yes
  verify() { # WHAT
    systemd-analyze verify --man="$man_pages" "$unit" >verify.log 2>&1 || true
    ! grep blindfuse verify.log || fail "systemd-analyze finds fault with the unit $1"
  }
  verify 'as it is installed'
  # And with a GPU, for which it asks for another unit of the package.
  mkdir -p "/etc/systemd/system/$(basename "$unit").d"
  dpkg-deb --fsys-tarfile "$package" | tar -xO ./usr/share/doc/blindfuse/examples/gpu.conf \
    >"/etc/systemd/system/$(basename "$unit").d/gpu.conf"
  verify 'for a GPU'
  rm -r "/etc/systemd/system/$(basename "$unit").d"
fi
if command -v man >/dev/null; then
  for page in blindfuse.1 blindfuse-serve.1 blindfuse.conf.5; do
    man --warnings=all --pager=cat --local-file "/usr/share/man/man${page##*.}/$page.gz" >shown 2>man.log
    if [ ! -s shown ] || [ -s man.log ]; then fail "man $page: $(cat man.log)"; fi
  done
fi
echo 'installed'

# As shipped it says what is missing.
status=0
as_service blindfuse serve --config "$config" 2>refused.log || status=$?
is 'status without a database' 1 "$status"
grep -q /var/lib/blindfuse/database refused.log || fail "no database, and it says: $(cat refused.log)"

printf 'tea\thot leaf juice\ncocoa\thot chocolate\n' >drinks.tsv
as_service blindfuse build drinks.tsv --output /var/lib/blindfuse/database 2>/dev/null
sed -i 's/^\(listen\|admin-listen\) = .*/\1 = "127.0.0.1:0"/' "$config"
echo 'ready-file = "/run/blindfuse/url"' >>"$config"
install -d -m 0750 -o blindfuse -g blindfuse /run/blindfuse
# With ProtectSystem=strict only /run and /tmp can be written to.
unshare --mount sh -c 'mount -o remount,bind,ro / && exec /tmp/service_test.py "$@"' - "$unit" /run/blindfuse/url
echo 'started, asked, reloaded and stopped'

touch is-active
: >"$calls"
dpkg_quietly --install "$package"
grep -q ready-file "$config" || fail 'installing it again has changed the configuration'
grep -qE '(^| )restart( |$).*blindfuse' "$calls" || fail 'installing it again has not restarted the service'
: >"$calls"
dpkg_quietly --remove blindfuse
grep -qE '(^| )stop( |$).*blindfuse' "$calls" || fail 'removing it has not stopped the service'
for gone in /usr/bin/blindfuse /usr/bin/blindfuse-client "$unit"; do
  [ ! -e "$gone" ] || fail "removing it has left $gone"
done
for left in "$config" /var/lib/blindfuse/database/manifest.json; do
  [ -e "$left" ] || fail "removing it has taken $left"
done

# What the service for a GPU leaves.
mkdir -p /var/cache/blindfuse/ab
dpkg_quietly --purge blindfuse
[ ! -e /var/cache/blindfuse ] || fail 'purging it has left the cache of compiled kernels'
[ ! -e /etc/blindfuse ] || fail 'purging it has left the configuration'
[ -e /var/lib/blindfuse/database/manifest.json ] || fail 'purging it has taken a database'
grep -q 'kept with the user blindfuse: /var/lib/blindfuse' dpkg.log || fail "purging it does not say that a database is left: $(cat dpkg.log)"
getent passwd blindfuse >/dev/null || fail 'purging it has taken the user to whom a database belongs'

dpkg_quietly --install "$package"
rm -r /var/lib/blindfuse/database
dpkg_quietly --purge blindfuse
[ ! -e /var/lib/blindfuse ] || fail 'purging it has left an empty folder'
for database in passwd group; do
  ! getent "$database" blindfuse >/dev/null || fail "purging it has left the user in $database"
done
echo 'removed and purged'
