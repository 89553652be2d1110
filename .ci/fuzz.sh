#!/usr/bin/env bash
# Runs every fuzz target within bounds: fuzz.sh LIMIT, as go test -fuzztime takes it: 5000x, 2m.
# Prefer a count: at the end of a duration the fuzzing engine may report its own deadline as a failure of the target.
# Making a found input smaller is bounded too, for it counts no execution.
set -euo pipefail
cd "$(dirname "$0")/.."

limit=${1:?usage: fuzz.sh LIMIT}
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
		echo "fuzz: $target in $folder for $limit" >&2
		count=$((count + 1))
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$limit" -fuzzminimizetime 20x "./$folder" || failed+=("$folder:$target")
	done
done

if ((${#failed[@]})); then
	printf 'fuzz: failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
echo "fuzz: $count targets, no failure" >&2
