#!/bin/sh
# Prints the base image to build on: ensure.sh BASE|GO_BASE|NODE_BASE
#
# That is the image which images/codex/Dockerfile or Dockerfile names as the default of this argument, if it is here or
# can be pulled. Otherwise it is a stand-in under our own tag, made from what this machine has: debootstrap for Debian,
# its own Go tree, its own node and npm. Making one needs root on a Debian-like Linux. Progress goes to stderr.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
suite=bookworm
debian=mcp-agents-base/debian:$suite
pull_seconds=${PULL_SECONDS:-120}

say() { echo "base images: $*" >&2; }
die() {
	say "$*"
	exit 1
}
present() { docker image inspect "$1" >/dev/null 2>&1; }

# The mirror that this machine's apt uses; nothing where apt is not Debian's, and debootstrap then takes its default.
mirror() {
	apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk '$1 == "Debian" && $2 == "main" && $3 !~ /-/ { print $4; exit }'
}

make_debian() {
	[ "$(uname -s)" = Linux ] && [ "$(id -u)" -eq 0 ] ||
		die "no image can be pulled, and only root on Linux can make a stand-in; pull $wanted, or name another in $name"
	command -v debootstrap >/dev/null 2>&1 || "$root/.ci/apt.sh" debootstrap
	dir=$(mktemp -d /var/tmp/mcp-agents-base.XXXXXX)
	# debootstrap leaves /proc mounted there when it is interrupted; --one-file-system keeps rm out of it.
	trap 'umount "$dir/proc" "$dir/sys" 2>/dev/null || :; rm -rf --one-file-system "$dir"' EXIT
	trap 'exit 1' INT TERM HUP
	say "making $debian with debootstrap (about 40 s)"
	proxy=$(apt-config shell p Acquire::http::Proxy 2>/dev/null | sed "s/^p='\(.*\)'$/\1/")
	# shellcheck disable=SC2046
	env ${proxy:+http_proxy="$proxy"} debootstrap --variant=minbase "$suite" "$dir" $(mirror) >"$dir.log" 2>&1 || {
		tail -n 15 "$dir.log" >&2
		die "debootstrap failed; all of its output is in $dir.log"
	}
	rm -f "$dir.log"
	# As in Debian's own slim images: no manuals and no other languages, now and in later installs.
	mkdir -p "$dir/etc/dpkg/dpkg.cfg.d"
	printf 'path-exclude /usr/share/%s/*\n' doc man info locale >"$dir/etc/dpkg/dpkg.cfg.d/slim"
	printf 'path-include /usr/share/doc/*/copyright\n' >>"$dir/etc/dpkg/dpkg.cfg.d/slim"
	find "$dir/usr/share/doc" "$dir/usr/share/man" "$dir/usr/share/info" "$dir/usr/share/locale" \
		! -type d ! -name copyright -delete
	rm -rf "$dir"/var/cache/apt/* "$dir"/var/lib/apt/lists/* "$dir"/var/log/*.log "$dir"/var/log/apt
	tar -C "$dir" --one-file-system -c . | docker import --change 'CMD ["bash"]' - "$debian" >/dev/null
}

# build_on_debian NAME IMAGE DIR: builds NAME.Dockerfile, which finds DIR as NAME beside the machine's certificate
# authorities. Links are followed, since a distribution's Go tree is full of them.
build_on_debian() {
	present "$debian" || make_debian
	[ -e /etc/ssl/certs/ca-certificates.crt ] || "$root/.ci/apt.sh" ca-certificates
	say "making $2"
	tar -c -h -C "$here" "$1.Dockerfile" -C /etc/ssl/certs ca-certificates.crt \
		--transform "s,^\./,$1/," --transform "s,^\.\$,$1," \
		-C "$3" --exclude=./test --exclude=./api --exclude=./doc --exclude=./pkg/obj . |
		DOCKER_CLI_HINTS=false docker build -q -f "$1.Dockerfile" --build-arg "DEBIAN=$debian" -t "$2" - >/dev/null
}

make_golang() {
	command -v go >/dev/null 2>&1 || die "Go is not installed: https://go.dev/dl"
	build_on_debian golang "$standin" "$(go env GOROOT)"
}

make_node() {
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	if command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1; then
		ln -s "$(readlink -f "$(command -v node)")" "$dir/node"
		npm=$(readlink -f "$(command -v npm)")
		ln -s "${npm%/bin/*}" "$dir/npm"
	fi
	build_on_debian node "$standin" "$dir"
}

name=${1:-}
case $name in
BASE) dockerfile=images/codex/Dockerfile standin=$debian make=make_debian ;;
NODE_BASE) dockerfile=images/codex/Dockerfile standin=mcp-agents-base/node:$suite make=make_node ;;
GO_BASE) dockerfile=Dockerfile standin=mcp-agents-base/golang:$(go env GOVERSION | tr -d ' ') make=make_golang ;;
*) die "usage: ensure.sh BASE|GO_BASE|NODE_BASE" ;;
esac
wanted=$(sed -n "s/^ARG $name=//p" "$root/$dockerfile")
[ -n "$wanted" ] || die "$dockerfile has no default for $name"

if present "$wanted"; then
	echo "$wanted"
elif present "$standin"; then
	echo "$standin"
elif say "pulling $wanted" && timeout "$pull_seconds" docker pull -q "$wanted" >/dev/null 2>"${TMPDIR:-/tmp}/pull.$$"; then
	rm -f "${TMPDIR:-/tmp}/pull.$$"
	echo "$wanted"
else
	say "cannot pull $wanted: $(tail -n 1 "${TMPDIR:-/tmp}/pull.$$")"
	rm -f "${TMPDIR:-/tmp}/pull.$$"
	"$make" >&2
	echo "$standin"
fi
