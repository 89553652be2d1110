#!/usr/bin/env bash
# Runs the Go tests: test.sh [TIER]; without a tier both, one after the other.
#
#   unit    every package but those of internal/e2e, side by side, with the race detector where a C compiler is here or can be
#           installed, and without an engine: a test that needs one is skipped
#   system  the packages that run the built program, containers or both (internal/e2e, and each one whose tests import
#           testkit/images), one at a time, so that none is the load of another. Without the race detector: it would see the
#           test's side only, and the unit tier has seen that
#
# With MCP_AGENTS_FULL=1 the system tier leaves nothing out: the whole fault table on docker, and the long combinations.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t system < <({
	echo ./internal/e2e/...
	grep -rl --include='*_test.go' --exclude-dir=e2e '"mcpagents/internal/testkit/images"' internal | xargs -r -n1 dirname | sed 's|^|./|'
} | sort -u)

# The limits are for hangs: a package that ends only by its limit has a test that waits for what never comes.
unit() {
	local race=-race
	if ! command -v "$(go env CC)" >/dev/null; then
		if ! .ci/apt.sh gcc libc6-dev; then
			echo "test: no C compiler: running WITHOUT the race detector" >&2
			race=
		fi
	fi
	local packages
	packages=$(go list ./... | grep -v '/internal/e2e/')
	echo "go test ${race:+$race }(unit tier: $(wc -l <<<"$packages") packages)" >&2
	# shellcheck disable=SC2086
	env ${race:+CGO_ENABLED=1} MCP_AGENTS_REQUIRE_ENGINE= MCP_AGENTS_TEST_IMAGE_CODEX= MCP_AGENTS_TEST_IMAGE_CLAUDE= \
		go test $race -vet=off -count=1 -timeout 10m $packages
}

system() {
	echo "go test -p 1 ${system[*]} (system tier)" >&2
	CGO_ENABLED=0 go test -vet=off -count=1 -timeout 25m -p 1 -parallel "${TEST_PARALLEL:-4}" "${system[@]}"
}

case ${1:-all} in
unit) unit ;;
system) system ;;
all)
	# The second tier runs after a failure of the first, so that one run shows all failures.
	status=0
	unit || status=$?
	system || status=$?
	exit "$status"
	;;
*)
	echo "usage: test.sh [unit|system]" >&2
	exit 2
	;;
esac
