#!/bin/sh
# Installs Debian packages: apt.sh PACKAGE...
# Status 3 when this machine cannot (no apt, or not root); the caller decides what that means.
set -eu

if ! command -v apt-get >/dev/null 2>&1; then
	echo "cannot install $*: this machine has no apt-get" >&2
	exit 3
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "cannot install $*: not root (run: sudo apt-get install $*)" >&2
	exit 3
fi

install() {
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
		-o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@" >&2
}

echo "apt-get install $*" >&2
# The lists of a fresh machine are often empty or old: refresh them once, after the first miss.
install "$@" 2>/dev/null && exit 0
apt-get update -q >&2 || echo "apt-get update failed in part; going on" >&2
install "$@" || exit 3
