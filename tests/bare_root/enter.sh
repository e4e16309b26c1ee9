#!/usr/bin/env bash
# The part of run.sh that runs in namespaces of its own: makes the root of a fresh Debian, puts a clone into it, mounts
# what a machine has mounted, and goes on there with inside.sh.
#
#   enter.sh SUITE ROOT LOGS SOURCE COMMIT JOBS TARGET...
#
# With BARE_ROOT_CCACHE=FOLDER the compiler's cache is that folder of this machine, for whoever has no time to compile the
# same with the same compiler twice. What a compiler cannot do without a package that is missing, its cache cannot, either.
set -euo pipefail

# All network settings come from this machine's configuration.
declare -a network=()

# The package archives of a release of Debian, as this machine's apt knows them of its own release, one a line:
# URI SUITE COMPONENT.
archives_known_to_apt() { # SUITE
  command -v apt-get >/dev/null || return 0
  # shellcheck disable=SC2016  # apt expands these
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    sed -nE "s/^Debian (.*) [a-z]+(-updates|-security)? main\$/\1 $1\2 main/p" | sort -u
}

# The file with the certificates that this machine trusts, which may be more than Debian's.
certificates() {
  local file
  for file in "${PIP_CERT:-}" "${REQUESTS_CA_BUNDLE:-}" "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt; do
    if [ -f "$file" ]; then
      echo "$file"
      return
    fi
  done
}

make_root() { # SUITE ROOT
  local suite=$1 root=$2 archives mirror proxy=
  archives=$(archives_known_to_apt "$suite")
  # Without a mirror debootstrap uses its own.
  mirror=$(awk -v suite="$suite" '$2 == suite { print $1; exit }' <<<"$archives")
  ! command -v apt-config >/dev/null || eval "$(apt-config shell proxy Acquire::http::Proxy)"
  http_proxy=${http_proxy:-$proxy} debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"} || return
  [ -z "$mirror" ] || awk '{ print "deb", $0 }' <<<"$archives" >"$root/etc/apt/sources.list"
}

# How this machine's apt and pip reach their servers; DNS is debootstrap's part.
copy_network_settings() { # ROOT
  local root=$1 bundle file name
  cp -L /etc/hosts "$root/etc/hosts"
  ! command -v apt-config >/dev/null ||
    apt-config dump | grep -E '^Acquire::(https?::(Proxy|Timeout|Pipeline-Depth)|Retries|ForceIPv[46]|Check-)\b' |
    grep -v Proxy-Auto-Detect >"$root/etc/apt/apt.conf.d/90this-machine" || true
  bundle=$(certificates)
  if [ -n "$bundle" ]; then
    install -D -m 644 "$bundle" "$root/etc/ssl/this-machine.crt"
    echo 'Acquire::https::CAInfo "/etc/ssl/this-machine.crt";' >>"$root/etc/apt/apt.conf.d/90this-machine"
    network+=(PIP_CERT=/etc/ssl/this-machine.crt)
  fi
  for file in /etc/xdg/pip/pip.conf /etc/pip.conf; do
    [ ! -f "$file" ] || install -D -m 644 "$file" "$root$file"
  done
  for file in .pip/pip.conf .config/pip/pip.conf; do
    [ ! -f ~/"$file" ] || install -D -m 644 ~/"$file" "$root/root/$file"
  done
  if [ -f "${PIP_CONFIG_FILE:-}" ]; then
    cp -L "$PIP_CONFIG_FILE" "$root/root/pip.conf"
    network+=(PIP_CONFIG_FILE=/root/pip.conf)
  fi
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_EXTRA_INDEX_URL \
    PIP_TRUSTED_HOST PIP_PROXY PIP_DEFAULT_TIMEOUT PIP_RETRIES; do
    [ -z "${!name:-}" ] || network+=("$name=${!name}")
  done
}

mount_machine() { # ROOT
  local root=$1 device
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys"
  # The devices that every machine has, one by one.
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  mkdir "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  ln -s /proc/self/fd/0 "$root/dev/stdin"
  ln -s /proc/self/fd/1 "$root/dev/stdout"
  ln -s /proc/self/fd/2 "$root/dev/stderr"
}

main() { # SUITE ROOT LOGS SOURCE COMMIT JOBS TARGET...
  local suite=$1 root=$2 logs=$3 source=$4 commit=$5 jobs=$6
  shift 6
  umask 022
  echo 'Making the root, for a few minutes'
  make_root "$suite" "$root" >"$logs/debootstrap.log" 2>&1 || {
    cat "$logs/debootstrap.log" >&2
    exit 1
  }
  copy_network_settings "$root"
  git clone --quiet --no-local --no-checkout "$source" "$root/root/blindfuse"
  git -C "$root/root/blindfuse" checkout --quiet --detach "$commit"
  cp "$source/tests/bare_root/inside.sh" "$root/root/inside.sh"
  mount_machine "$root"
  # What can be written to in the root: logs, which outlive a run that is killed, and the cache.
  mkdir "$root/root/logs"
  mount --bind "$logs" "$root/root/logs"
  if [ -n "${BARE_ROOT_CCACHE:-}" ]; then
    mkdir -p "$root/root/.cache/ccache"
    mount --bind "$BARE_ROOT_CCACHE" "$root/root/.cache/ccache"
  fi

  # Where this is chroot alone, namespaces of users are refused. From here on nothing else of this machine can be reached.
  mkdir "$root/outside"
  cd "$root"
  pivot_root . outside
  cd /
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  hash -r
  umount --lazy /outside
  rmdir /outside
  exec env -i "${network[@]}" HOME=/root USER=root LOGNAME=root SHELL=/bin/bash TERM=dumb PATH="$PATH" \
    bash /root/inside.sh "$jobs" "$@"
}

main "$@"
