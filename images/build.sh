#!/usr/bin/env bash
# Builds one of our images where its inputs changed: build.sh codex|claude|agy|chrome-devtools|chromium|front-end VERSION
#
# The images of sandboxes are built by the program itself (`mcp-agents images build`); what is added here are the bases
# and the npm registry of this machine. A digest over everything that goes into an image is kept as its label, so that
# nothing is rebuilt in vain and a fresh engine, a new checkout or another architecture are never mistaken for "up to date".
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "images: $*" >&2; }

name=${1:?usage: build.sh codex|claude|agy|chrome-devtools|chromium|front-end VERSION}
version=${2:?usage: build.sh codex|claude|agy|chrome-devtools|chromium|front-end VERSION}

case $name in
codex | claude | chrome-devtools) bases=(BASE NODE_BASE) ;;
agy | chromium) bases=(BASE) ;;
front-end) bases=(GO_BASE) ;;
*)
	say "no image is called $name"
	exit 2
	;;
esac

args=()
for base in "${bases[@]}"; do
	ref=${!base:-$(images/base/ensure.sh "$base")}
	args+=(--build-arg "$base=$ref")
done

# The classic builder keeps what a rebuild replaces: the old image, and each old build stage, half a gigabyte for Go. The
# newest stage stays as its cache. One that is still in use stays too.
sweep() {
	{
		docker images -q --filter dangling=true --filter "label=mcp-agents.image=$1"
		docker images -q --filter dangling=true --filter "label=mcp-agents.stage=$name" | tail -n +2
	} | xargs -r docker rmi >/dev/null 2>&1 || true
}

sandbox_image() {
	local image=$1
	# What is downloaded for agy is named by the caller.
	if [[ $name == agy ]]; then
		for variable in AGY_URL AGY_VERSION AGY_SHA256; do args+=(--build-arg "$variable=${!variable:-}"); done
	elif [[ -z ${npm_config_registry:-${NPM_CONFIG_REGISTRY:-}} ]] && command -v npm >/dev/null; then
		# Without -l this lists only what somebody set.
		npm_config_registry=$(npm config ls 2>/dev/null | sed -n 's/^registry = "\(.*\)".*/\1/p' | tail -n 1)
		export npm_config_registry
	fi
	# Another version than the pinned one, with its sum. No general names: NODE_VERSION is set in many a shell.
	for variable in CHROME_DEVTOOLS_VERSION CHROME_DEVTOOLS_SHA512 CHROMIUM_VERSION; do
		[[ -n ${!variable:-} ]] && grep -q "^ARG $variable=" "images/$image/Dockerfile" 2>/dev/null || continue
		args+=(--build-arg "$variable=${!variable}")
	done
	[[ -x bin/mcp-agents ]] || {
		say "bin/mcp-agents is missing: make build"
		exit 1
	}
	bin/mcp-agents images build "$image" --tag "mcp-agents/$image:$version" "${args[@]}"
	sweep "$image"
}

# The digest covers the bases' names and the files, not the settings of this machine.
front_end_digest() {
	{
		printf '%s\n' "$(docker version --format '{{.Server.Arch}}')" "${args[@]}"
		find Dockerfile go.mod go.sum cmd internal images -type f ! -name '*_test.go' ! -path '*/testdata/*' ! -path 'images/init/*' -print |
			LC_ALL=C sort | while read -r file; do printf '%s ' "$file" && cksum <"$file"; done
	} | { sha256sum 2>/dev/null || shasum -a 256; } | cut -d' ' -f1
}

front_end() {
	local wanted tag stale=no tags=("mcp-agents:$version" "mcp-agents:${LATEST:-latest}")
	wanted=$(front_end_digest)
	for tag in "${tags[@]}"; do
		[[ $(docker image inspect --format '{{index .Config.Labels "mcp-agents.inputs"}}' "$tag" 2>/dev/null) == "$wanted" ]] || stale=yes
	done
	if [[ $stale == no ]]; then
		say "${tags[0]} is up to date"
		return
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
	if command -v go >/dev/null; then
		while IFS='=' read -r variable value; do
			value=${value#[\'\"]} value=${value%[\'\"]}
			[[ -z $value ]] || args+=(--build-arg "$variable=$value")
		done < <(go env -changed GOPROXY GOSUMDB GOFLAGS 2>/dev/null | sed 's/^set //')
	else
		for variable in GOPROXY GOSUMDB GOFLAGS; do
			[[ -z ${!variable:-} ]] || args+=(--build-arg "$variable")
		done
	fi
	for tag in "${tags[@]}"; do args+=(-t "$tag"); done
	say "building ${tags[0]}"
	local start=$SECONDS
	docker build --force-rm "${args[@]}" \
		--label "mcp-agents.image=front-end" --label "mcp-agents.inputs=$wanted" -f Dockerfile . >&2
	say "built ${tags[0]} in $((SECONDS - start)) s, $(docker image inspect --format '{{.Size}}' "${tags[0]}" | awk '{printf "%.0f MB", $1 / 1e6}')"
	sweep front-end
}

case $name in
agy) sandbox_image gemini ;;
front-end) front_end ;;
*) sandbox_image "$name" ;;
esac
