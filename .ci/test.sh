#!/usr/bin/env bash
# Runs the Go tests once each, with the race detector where a C compiler is here or can be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

race=-race
if ! command -v "$(go env CC)" >/dev/null; then
	if ! .ci/apt.sh gcc libc6-dev; then
		echo "test: no C compiler: running WITHOUT the race detector" >&2
		race=
	fi
fi
export CGO_ENABLED=${race:+1}
[[ -n $CGO_ENABLED ]] || unset CGO_ENABLED
echo "go test ${race:+$race }./..." >&2
go test ${race:+"$race"} -count=1 -timeout 25m ./...
