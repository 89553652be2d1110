#!/usr/bin/env bash
# fetch.sh DIR: the pinned Codex CLI into DIR, for the local runtime on a machine without an engine. Version and sums are
# those of the image.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:?usage: fetch.sh DIR}
arg() { sed -n "s/^ARG $1=//p" "$here/Dockerfile"; }
case "$(uname -s)-$(uname -m)" in
Linux-x86_64) platform=linux-x64 sum=$(arg CODEX_SHA512_AMD64) ;;
Linux-aarch64) platform=linux-arm64 sum=$(arg CODEX_SHA512_ARM64) ;;
*)
	echo "codex: no pinned package for $(uname -s) $(uname -m)" >&2
	exit 1
	;;
esac
version=$(arg CODEX_VERSION)
[[ $("$dir/bin/codex" --version 2>/dev/null) == *" $version" ]] && exit 0
echo "codex: fetching $version for $platform" >&2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
npm pack --silent "@openai/codex@$version-$platform" >/dev/null
echo "$sum  openai-codex-$version-$platform.tgz" | sha512sum -c - >&2
tar -xzf "openai-codex-$version-$platform.tgz" --no-same-owner
cd - >/dev/null
rm -rf "$dir"
mkdir -p "$(dirname "$dir")"
mv "$tmp"/package/vendor/*-unknown-linux-musl "$dir"
