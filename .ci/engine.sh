#!/bin/sh
# Ensures that a container engine works, and starts one where that is possible.
#
#   status 0  an engine works (it was there, or it was started)
#   status 3  no engine can be had here; the last line on stderr says why
#
# "Works" means that a container was started and ended well: an engine that only answers counts as none. The script
# may be called at any time and by several callers at once. It never starts a second dockerd beside a running one: two in
# one network namespace break each other's bridge.
#
# ENGINE_LOG and ENGINE_WAIT (seconds) override where a dockerd started here logs and how long it may take.
set -u

here=$(cd "$(dirname "$0")" && pwd)
log=${ENGINE_LOG:-/var/log/mcp-agents-dockerd.log}
wait=${ENGINE_WAIT:-60}
probe_image=mcp-agents-base/probe:1
socket=/var/run/docker.sock

say() { echo "engine: $*" >&2; }
none() {
	say "none: $*"
	exit 3
}

# bounded SECONDS COMMAND...: a hung engine must not hang its caller. macOS has no timeout(1).
bounded() {
	if command -v timeout >/dev/null 2>&1; then
		timeout "$@"
	else
		shift
		"$@"
	fi
}

# alive PID NAME: PID is a live process that runs the program NAME.
alive() {
	case $1 in '' | *[!0-9]*) return 1 ;; esac
	[ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ] && ! grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"
}

# find_live NAME: prints the pids of live processes of that name in our network namespace, one a line. A test's or a
# container's own engine lives in another one and is no neighbour.
find_live() {
	for dir in /proc/[0-9]*; do
		alive "${dir#/proc/}" "$1" || continue
		[ "$(readlink "$dir/ns/net")" = "$(readlink /proc/self/ns/net)" ] && echo "${dir#/proc/}"
	done
	return 0
}

answers() { bounded 5 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

# The probe is a static program of ours, so that an engine without images and without a registry can be judged.
import_probe() {
	bounded 10 docker image inspect "$probe_image" >/dev/null 2>&1 && return 0
	arch=$(bounded 10 docker version --format '{{.Server.Arch}}') || return 1
	dir=$(mktemp -d) || return 1
	(cd "$here/probe" && CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -buildvcs=false -trimpath -o "$dir/probe" main.go) >&2 &&
		tar -C "$dir" -c probe | bounded 60 docker import --change 'ENTRYPOINT ["/probe"]' - "$probe_image" >/dev/null
	rc=$?
	rm -rf "$dir"
	return "$rc"
}

# Sets $fault when no container can be started.
starts_container() {
	fault=$(import_probe 2>&1) || return 1
	fault=$(bounded 60 docker run --rm --log-driver none "$probe_image" 2>&1)
}

report_working() {
	say "works: $(docker version --format '{{.Server.Version}}, API {{.Server.APIVersion}}, {{.Server.Os}}/{{.Server.Arch}}')"
}

# May this process start a daemon at all? Says why not.
require_startable() {
	[ "$(uname -s)" = Linux ] || none "no engine answers; start Docker Desktop, colima or the like"
	[ -z "${DOCKER_HOST:-}" ] || none "DOCKER_HOST=$DOCKER_HOST does not answer; start that engine or unset the variable"
	[ "$(id -u)" -eq 0 ] || none "no engine answers, and only root may start one (or: join the docker group)"
	# CAP_SYS_ADMIN is bit 21: without it dockerd can mount nothing, so an install would be wasted.
	caps=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
	[ $((0x$caps >> 21 & 1)) -eq 1 ] || none "no engine answers, and this root may not mount (an unprivileged container?)"
}

install_engine() {
	command -v dockerd >/dev/null 2>&1 && command -v iptables >/dev/null 2>&1 && command -v docker >/dev/null 2>&1 && return 0
	say "installing docker.io"
	"$here/apt.sh" docker.io iptables debootstrap ca-certificates || none "docker.io could not be installed"
	# From Debian 13 on the client is a package of its own.
	command -v docker >/dev/null 2>&1 || "$here/apt.sh" docker-cli || none "no docker client could be installed"
}

# A machine without an init system may have no control groups mounted.
mount_cgroups() {
	grep -qE '^[^ ]+ /sys/fs/cgroup[^ ]* cgroup2? ' /proc/mounts && return 0
	say "mounting the control groups"
	command -v cgroupfs-mount >/dev/null 2>&1 || "$here/apt.sh" cgroupfs-mount || none "no control groups are mounted"
	cgroupfs-mount >&2 || none "the control groups could not be mounted"
}

# What a killed engine leaves behind keeps the next one from starting. Only what belongs to no live process is removed.
remove_stale() {
	for entry in docker.pid:dockerd docker/containerd/containerd.pid:containerd; do
		file=/var/run/${entry%:*}
		[ -e "$file" ] || continue
		pid=$(cat "$file" 2>/dev/null)
		alive "$pid" "${entry#*:}" && continue
		say "removing stale $file (pid ${pid:-?} is no live ${entry#*:})"
		rm -f "$file"
		[ "${entry#*:}" = dockerd ] || rm -f /var/run/docker/containerd/*.sock /var/run/docker/containerd/*.sock.ttrpc
	done
	# dockerd uses the system's containerd as soon as its socket exists, whether or not somebody listens.
	system=/run/containerd/containerd.sock
	if [ -S "$system" ] && ! bounded 5 ctr --connect-timeout 3s --address "$system" version >/dev/null 2>&1; then
		own=$(cat /var/run/docker/containerd/containerd.pid 2>/dev/null)
		for pid in $(find_live containerd); do
			[ "$pid" = "$own" ] || none "containerd (pid $pid) is running but does not answer on $system"
		done
		say "removing stale $system"
		rm -f "$system" "$system.ttrpc"
	fi
}

# A link narrower than Ethernet's 1500 bytes (a VPN, a tunnel) stalls large transfers through a bridge that is wider.
narrow_mtu() {
	link=$(awk '$2 == "00000000" { print $1; exit }' /proc/net/route 2>/dev/null)
	mtu=$(cat "/sys/class/net/${link:-none}/mtu" 2>/dev/null) || return 0
	[ "$mtu" -lt 1500 ] || return 0
	grep -qs '"mtu"' /etc/docker/daemon.json || echo "--mtu=$mtu"
}

start_engine() {
	if [ -d /run/systemd/system ]; then
		say "starting the docker service"
		systemctl start docker >&2 || none "systemctl start docker failed"
		return
	fi
	remove_stale
	: >>"$log" 2>/dev/null || log=$(mktemp /tmp/mcp-agents-dockerd.XXXXXX)
	say "starting dockerd, log in $log"
	# Detached, and without the lock's descriptor, so that it outlives this script and its terminal.
	# shellcheck disable=SC2046
	setsid -f dockerd $(narrow_mtu) </dev/null >>"$log" 2>&1 9>&-
}

await_engine() {
	started=$(date +%s)
	until answers; do
		waited=$(($(date +%s) - started))
		# A failed start is over as soon as its process is; the first seconds are for the exec.
		if [ "$waited" -ge 2 ] && [ -z "$(find_live dockerd)" ]; then
			tail -n 5 "$log" >&2 2>/dev/null
			none "dockerd ended at once; its last lines are above, all of them in $log"
		fi
		[ "$waited" -lt "$wait" ] || none "dockerd did not answer within $wait s; see $log"
		say "waiting for dockerd ($waited s)"
		sleep 1
	done
}

ensure() {
	if command -v docker >/dev/null 2>&1 && answers; then
		starts_container && return 0
		none "an engine answers but cannot start a container: $fault"
	fi
	require_startable
	running=$(find_live dockerd | head -n 1)
	if [ -n "$running" ]; then
		say "dockerd (pid $running) is running but does not answer yet"
	else
		install_engine
		answers || {
			mount_cgroups
			start_engine
		}
	fi
	await_engine
	starts_container || none "the engine answers but cannot start a container: $fault"
}

# One caller at a time, where there is a flock(1).
if [ "$(id -u)" -eq 0 ] && command -v flock >/dev/null 2>&1; then
	exec 9>/var/lock/mcp-agents-engine.lock
	flock -w 180 9 || none "another caller holds /var/lock/mcp-agents-engine.lock for more than 180 s"
fi
ensure
report_working
