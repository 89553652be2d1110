#!/usr/bin/env bash
# Runs the Go tests once each, with the race detector where a C compiler is here or can be installed. At the end it prints
# what passed only when it was played again: go test hides what a passing test logs.
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
MCP_AGENTS_TEST_NOTES=$(mktemp)
export MCP_AGENTS_TEST_NOTES
notes() {
	if [[ -s $MCP_AGENTS_TEST_NOTES ]]; then
		sed 's/^/test: /' "$MCP_AGENTS_TEST_NOTES" >&2
		echo "test: $(wc -l <"$MCP_AGENTS_TEST_NOTES") times a scenario was played again because the machine was busy" >&2
	fi
	rm -f "$MCP_AGENTS_TEST_NOTES"
}
trap notes EXIT
echo "go test ${race:+$race }./..." >&2
go test ${race:+"$race"} -count=1 -timeout 25m ./...
