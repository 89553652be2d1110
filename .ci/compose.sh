#!/usr/bin/env bash
# Builds docker compose into bin/tools, once, and prints its path: Debian's docker has none. This version speaks to engines
# of API 1.41 (5.1.0 refuses them) and builds with the project's Go; its module is none of the project's dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."

module=github.com/docker/compose/v5
version=v5.6.0
path=$PWD/bin/tools/$version/docker-compose

if [[ ! -x $path ]]; then
	echo "building docker compose $version" >&2
	dir=$(cd / && GOFLAGS= go mod download -json "$module@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	# A module that excludes versions of others cannot be installed by its name.
	(cd "$dir" && GOFLAGS=-mod=mod CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$path" ./cmd) >&2
fi
echo "$path"
