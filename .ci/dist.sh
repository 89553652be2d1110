#!/usr/bin/env bash
# Fills dist/: dist.sh VERSION [images]
#
# The programs hold everything that `mcp-agents images build` needs, and are the same bytes from the same sources. With
# "images", the images of this machine's architecture go there as archives for `docker load`.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: dist.sh VERSION [images]}
platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)
images=("mcp-agents:$version" "mcp-agents/codex:$version" "mcp-agents/claude:$version")

say() { echo "dist: $*" >&2; }

rm -rf dist
mkdir dist
for platform in "${platforms[@]}"; do
	os=${platform%/*} arch=${platform#*/}
	file=dist/mcp-agents_${version}_${os}_$arch
	[[ $os != windows ]] || file+=.exe
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -tags embedinit -trimpath -buildvcs=false -ldflags '-s -w' -o "$file" ./cmd/mcp-agents
	say "$(du -h "$file" | cut -f1)	$file"
done
if [[ ${2:-} == images ]]; then
	arch=$(docker version --format '{{.Server.Arch}}')
	for image in "${images[@]}"; do
		name=${image%:*}
		[[ $name != mcp-agents ]] || name=mcp-agents-front-end
		file=dist/${name//\//-}_${version}_linux_$arch.tar.gz
		# Without gzip's own time, so that the same image gives the same archive.
		docker save "$image" | gzip -n -6 >"$file"
		say "$(du -h "$file" | cut -f1)	$file"
	done
fi
sum() { sha256sum "$@" 2>/dev/null || shasum -a 256 "$@"; }
(cd dist && sum mcp-agents* >SHA256SUMS && sum -c SHA256SUMS >/dev/null)
say "$(wc -l <dist/SHA256SUMS | tr -d ' ') files, dist/SHA256SUMS"
