#!/usr/bin/env bash
# Runs README's quick start, line by line as it stands there, on a Debian root that has Docker's command, make and nothing
# else of ours: no Go, no git, no npm. The images are built under tags of its own, which no earlier run has left, so that
# every line does its work; the engine is this machine's, by its socket, and layers that it has cached, it has. Ends with
# "quickstart: ok" and the time of each line.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=${QUICKSTART_SECONDS:-900}
image=mcp-agents-test/quickstart:1
version=$(sed -n 's/^const Version = "\(.*\)"/\1/p' internal/version/version.go)-quickstart
tags=("mcp-agents:$version" "mcp-agents/codex:$version" "mcp-agents/claude:$version")

say() { echo "quickstart: $*" >&2; }

# Bases and addresses of this machine, which a machine with the public ones need not name.
settings=(-e "MAKEFLAGS=VERSION=$version" -e "LATEST=$version" -e "MCP_AGENTS_IMAGE=mcp-agents/codex:$version")
for name in BASE NODE_BASE GO_BASE; do settings+=(-e "$name=$(images/base/ensure.sh "$name")"); done
while IFS='=' read -r name value; do
	value=${value#[\'\"]} value=${value%[\'\"]}
	[[ -z $value ]] || settings+=(-e "$name=$value")
done < <(go env -changed GOPROXY GOSUMDB GOFLAGS 2>/dev/null | sed 's/^set //')
registry=${npm_config_registry:-$(npm config ls 2>/dev/null | sed -n 's/^registry = "\(.*\)".*/\1/p' | tail -n 1)}
[[ -z $registry ]] || settings+=(-e "npm_config_registry=$registry")
for name in HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy; do
	[[ -z ${!name:-} ]] || settings+=(-e "$name=${!name}")
done

# The first block below the heading, without its comments.
mapfile -t lines < <(awk '/^## Quick start/ { here = 1 } here && /^```$/ { block++; next } block == 1' README.md | sed 's/ *#.*//; /^$/d')
((${#lines[@]} >= 3)) || {
	say "README's quick start has ${#lines[@]} lines"
	exit 1
}

base=$(images/base/ensure.sh BASE)
say "a Debian root from $base"
docker build -q -t "$image" - >/dev/null <<END
FROM $base
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends docker.io make && rm -rf /var/lib/apt/lists/*
END

# The clone, at a path that the engine sees as well: what is in the working tree, also what is not committed yet, and no
# file that git ignores. One that was removed and is still in git's index is none.
dir=$(mktemp -d)
log=$(mktemp)
untag() { docker rmi "${tags[@]}" >/dev/null 2>&1 || true; }
trap 'rm -rf "$dir" "$log"; untag' EXIT
untag # of a run that was killed
chmod 0755 "$dir"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
	if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi
done | tar -c --null -T - | tar -x -C "$dir"

script='set -e
for tool in go git npm node; do ! command -v $tool || { echo "the root has $tool" >&2; exit 1; }; done
begin=$SECONDS
while IFS= read -r line; do
  start=$SECONDS
  echo "\$ $line"
  eval "$line" </dev/null
  echo "quickstart: $((SECONDS - start)) s: $line"
done
echo "quickstart: $((SECONDS - begin)) s in all"'
printf '%s\n' "${lines[@]}" | timeout -k 30 "$limit" docker run -i --rm -v /var/run/docker.sock:/var/run/docker.sock -v "$dir:$dir" -w "$dir" \
	"${settings[@]}" "$image" bash -c "$script" 2>&1 | tee "$log"

for tag in "${tags[@]}"; do
	grep -q "built $tag in " "$log" || {
		say "$tag was not built: what ran is not what a new user runs"
		exit 1
	}
done

grep -q '"mcpServers"' "$dir/.mcp.json" || {
	say "the client's entry was not written"
	exit 1
}
echo "quickstart: ok"
