#!/usr/bin/env bash
# Builds one of our images where its inputs changed: build.sh codex|claude|agy|front-end VERSION
#
# A digest over everything that goes into the image is kept as its label, so that nothing is rebuilt in vain and a fresh
# engine, a new checkout or another architecture are never mistaken for "up to date".
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "images: $*" >&2; }

name=${1:?usage: build.sh codex|claude|agy|front-end VERSION}
version=${2:?usage: build.sh codex|claude|agy|front-end VERSION}
arch=$(docker version --format '{{.Server.Arch}}')

case $name in
codex)
	dockerfile=images/codex/Dockerfile
	tags=("mcp-agents/codex:$version")
	inputs=("$dockerfile" "bin/sandbox-init-linux-$arch")
	bases=(BASE NODE_BASE)
	;;
claude)
	dockerfile=images/claude/Dockerfile
	tags=("mcp-agents/claude:$version")
	inputs=("$dockerfile" "bin/sandbox-init-linux-$arch")
	bases=(BASE NODE_BASE)
	;;
agy)
	dockerfile=images/agy/Dockerfile
	tags=("mcp-agents/gemini:$version")
	inputs=("$dockerfile" "bin/sandbox-init-linux-$arch")
	bases=(BASE)
	;;
front-end)
	dockerfile=Dockerfile
	tags=("mcp-agents:$version" "mcp-agents:latest")
	inputs=("$dockerfile" go.mod go.sum cmd internal)
	bases=(GO_BASE)
	;;
*)
	say "no image is called $name"
	exit 2
	;;
esac

args=()
for base in "${bases[@]}"; do
	ref=$(images/base/ensure.sh "$base")
	args+=(--build-arg "$base=$ref")
done

# What is downloaded for agy is named by the caller.
if [[ $name == agy ]]; then
	for variable in AGY_URL AGY_VERSION AGY_SHA256; do args+=(--build-arg "$variable=${!variable:-}"); done
fi

# The digest covers the bases' names and the files, not the settings of this machine that follow.
digest() {
	{
		printf '%s\n' "$arch" "${args[@]}"
		find "${inputs[@]}" -type f ! -name '*_test.go' ! -path '*/testdata/*' -print | LC_ALL=C sort |
			while read -r file; do printf '%s ' "$file" && cksum <"$file"; done
	} | { sha256sum 2>/dev/null || shasum -a 256; } | cut -d' ' -f1
}
wanted=$(digest)
current() { docker image inspect --format '{{index .Config.Labels "mcp-agents.inputs"}}' "$1" 2>/dev/null || true; }
stale=no
for tag in "${tags[@]}"; do
	[[ $(current "$tag") == "$wanted" ]] || stale=yes
done
if [[ $stale == no ]]; then
	say "${tags[0]} is up to date"
	exit 0
fi

# What this machine uses instead of a default, and only that. The engine knows the proxy variables by itself and keeps
# them out of the image.
for variable in HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy; do
	[[ -z ${!variable:-} ]] || args+=(--build-arg "$variable")
done
# Only the host's own network reaches a proxy on its loopback.
case "${HTTPS_PROXY:-}${https_proxy:-}${HTTP_PROXY:-}${http_proxy:-}" in
*127.0.0.1* | *localhost* | *'[::1]'*) args+=(--network host) ;;
esac
# The classic builder does not set it.
[[ $name == front-end ]] || args+=(--build-arg "TARGETARCH=$arch")
if [[ $name == codex || $name == claude ]] && command -v npm >/dev/null; then
	# Without -l this lists only what somebody set.
	registry=${npm_config_registry:-${NPM_CONFIG_REGISTRY:-$(npm config ls 2>/dev/null | sed -n 's/^registry = "\(.*\)".*/\1/p' | tail -n 1)}}
	[[ -z $registry ]] || args+=(--build-arg "NPM_CONFIG_REGISTRY=$registry")
fi
if [[ $name == front-end ]]; then
	while IFS='=' read -r variable value; do
		value=${value#[\'\"]} value=${value%[\'\"]}
		[[ -z $value ]] || args+=(--build-arg "$variable=$value")
	done < <(go env -changed GOPROXY GOSUMDB GOFLAGS 2>/dev/null | sed 's/^set //')
fi

for tag in "${tags[@]}"; do args+=(-t "$tag"); done
say "building ${tags[0]}"
start=$SECONDS
docker build --force-rm "${args[@]}" --label "mcp-agents.image=$name" --label "mcp-agents.inputs=$wanted" -f "$dockerfile" . >&2
say "built ${tags[0]} in $((SECONDS - start)) s, $(docker image inspect --format '{{.Size}}' "${tags[0]}" | awk '{printf "%.0f MB", $1 / 1e6}')"

# The classic builder keeps what a rebuild replaces: the old image, and each old build stage, half a gigabyte for Go. The
# newest stage stays as its cache. One that is still in use stays too.
{
	docker images -q --filter dangling=true --filter "label=mcp-agents.image=$name"
	docker images -q --filter dangling=true --filter "label=mcp-agents.stage=$name" | tail -n +2
} | xargs -r docker rmi >/dev/null 2>&1 || true
