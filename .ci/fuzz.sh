#!/usr/bin/env bash
# Runs every fuzz target for a bounded time: fuzz.sh DURATION (as go test -fuzztime takes it: 5s, 2m, 1000x).
set -euo pipefail
cd "$(dirname "$0")/.."

duration=${1:?usage: fuzz.sh DURATION}
mapfile -t folders < <(grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' cmd internal | xargs -r -n1 dirname | sort -u)
if ((${#folders[@]} == 0)); then
	echo "fuzz: there are no fuzz targets" >&2
	exit 1
fi

count=0
failed=()
for folder in "${folders[@]}"; do
	listed=$(go test -list '^Fuzz' "./$folder") || {
		echo "$listed" >&2
		failed+=("$folder (does not build)")
		continue
	}
	for target in $(grep '^Fuzz' <<<"$listed" || true); do
		echo "fuzz: $target in $folder for $duration" >&2
		count=$((count + 1))
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "./$folder" || failed+=("$folder:$target")
	done
done

if ((${#failed[@]})); then
	printf 'fuzz: failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
echo "fuzz: $count targets, no failure" >&2
