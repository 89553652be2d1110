#!/usr/bin/env bash
# The static checks. Each one that cannot run here (a tool or a database that is out of reach) says "skipped" and why;
# each one that runs must pass.
set -uo pipefail
cd "$(dirname "$0")/.."

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.9.0
platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)
tools=$PWD/bin/tools
failed=()
skipped=75 # the status of a check that has said why it cannot run

say() { echo "lint: $*" >&2; }

# check NAME COMMAND...: notes a failure and goes on, so that one run shows all of them.
check() {
	local name=$1 start=$SECONDS
	shift
	local status=0
	"$@" || status=$?
	case $status in
	0) say "$name: ok ($((SECONDS - start)) s)" ;;
	"$skipped") ;;
	*)
		say "$name: FAILED"
		failed+=("$name")
		;;
	esac
}

formatted() {
	local files
	files=$(gofmt -l cmd internal .ci) || return 1
	[[ -z $files ]] || {
		echo "gofmt would change:" $files >&2
		return 1
	}
}

# tool MODULE: builds a pinned tool once, outside the project's own dependencies. Fails where it cannot be fetched.
tool() {
	local name=${1%@*}
	name=${name##*/}
	local dir=$tools/${1##*@}
	[[ -x $dir/$name ]] || GOFLAGS= GOBIN=$dir go install "$1" >&2 || return 1
	echo "$dir/$name"
}

vulnerabilities() {
	local output status
	output=$("$1" ./... 2>&1)
	status=$?
	# 3 is its status for "found"; another one is a fault of the look-up, mostly a database that is out of reach.
	case $status in
	0) return 0 ;;
	3)
		echo "$output" >&2
		return 1
		;;
	esac
	if grep -q 'fetching vulnerabilities' <<<"$output"; then
		say "govulncheck: skipped: its database cannot be reached: $(tail -n 1 <<<"$output")"
		return $skipped
	fi
	echo "$output" >&2
	return 1
}

compiles() {
	local platform broken=0
	for platform in "${platforms[@]}"; do
		echo "  building for $platform" >&2
		CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} go build -buildvcs=false ./... || {
			echo "does not compile for $platform" >&2
			broken=1
		}
	done
	return $broken
}

check gofmt formatted
check "go vet" go vet ./...
if path=$(tool "$staticcheck"); then
	check staticcheck "$path" ./...
else
	say "staticcheck: skipped: $staticcheck cannot be fetched"
fi
if path=$(tool "$govulncheck"); then
	check govulncheck vulnerabilities "$path"
else
	say "govulncheck: skipped: $govulncheck cannot be fetched"
fi
if command -v shellcheck >/dev/null; then
	check shellcheck shellcheck .ci/*.sh .ci/run images/*.sh images/base/*.sh
else
	say "shellcheck: skipped: not installed"
fi
check "cross compile" compiles

if ((${#failed[@]})); then
	say "failed: ${failed[*]}"
	exit 1
fi
