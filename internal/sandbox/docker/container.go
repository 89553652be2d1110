package docker

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"mcpagents/internal/sandbox"
)

// facts is what Start found out about the engine and the workspace, so that
// the container's configuration is a pure function of spec and facts.
type facts struct {
	rootless    bool
	user        identity
	seccomp     string // profile as JSON; empty when the engine cannot filter
	podman      bool
	roRecursive bool   // the engine makes read-only binds recursively read-only
	version     string // of this build
}

// configure is the container of a sandbox.
func configure(spec sandbox.Spec, f facts) (*container.Config, *container.HostConfig) {
	config := &container.Config{
		Image:      spec.Image,
		User:       f.user.String(),
		WorkingDir: "/",
		Entrypoint: []string{"/usr/local/bin/sandbox-init", "-build", f.version},
		Cmd:        []string{},
		Env:        []string{"HOME=" + Home, "PATH=" + path},
		// The stream: open once, so that the engine closes it with our
		// attachment; never a terminal, which would rewrite line ends.
		AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true,
		// Init minds no signal, so an engine that stops would wait for nothing.
		StopSignal: "SIGKILL",
		Labels:     map[string]string{LabelSandbox: spec.ID, LabelInstance: spec.Instance, LabelProvider: spec.Provider},
	}
	memory := cmp.Or(spec.Limits.Memory, DefaultMemory)
	pids := cmp.Or(spec.Limits.PIDs, DefaultPIDs)
	host := &container.HostConfig{
		AutoRemove: true,
		// Otherwise the engine writes every prompt and answer to its disk.
		LogConfig:      container.LogConfig{Type: "none"},
		NetworkMode:    container.NetworkMode(cmp.Or(spec.Network, "bridge")),
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges"},
		ReadonlyRootfs: true,
		OomScoreAdj:    oomScore,
		GroupAdd:       f.user.groups(),
		Runtime:        spec.OCIRuntime,
		Tmpfs:          tmpfs(memory, f.user),
		Mounts:         binds(spec.Mounts, f.roRecursive),
		Resources: container.Resources{
			Memory: memory, MemorySwap: memory, PidsLimit: &pids,
			NanoCPUs: int64(cmp.Or(spec.Limits.CPUs, DefaultCPUs) * 1e9),
		},
	}
	if f.user.uid == 0 && !f.rootless {
		// Codex's sandbox cannot map uid 0 without it.
		host.CapAdd = []string{"SETFCAP"}
	}
	if f.seccomp != "" {
		host.SecurityOpt = append(host.SecurityOpt, "seccomp="+f.seccomp)
	}
	if reachesHost(spec.Network) && !f.podman { // Podman names it by itself
		host.ExtraHosts = []string{hostName + ":host-gateway"}
	}
	return config, host
}

// tmpfs are the two writable places beside the workspace. A tmpfs counts
// against the memory limit and a full one would kill init, so both together get
// half of it. Builds and test binaries run there, hence exec.
func tmpfs(memory int64, user identity) map[string]string {
	const options = "rw,exec,nosuid,nodev,size=%d,mode=%s"
	each := memory / 4
	return map[string]string{
		Home:   fmt.Sprintf(options+",uid=%d,gid=%d", each, "0700", user.uid, user.gid),
		"/tmp": fmt.Sprintf(options, each, "1777"),
	}
}

// binds are the mounts. By mount type a missing source is an error, where the
// older bind strings would make a directory.
func binds(mounts []sandbox.Mount, roRecursive bool) []mount.Mount {
	var out []mount.Mount
	for _, m := range mounts {
		options := &mount.BindOptions{Propagation: mount.PropagationPrivate}
		if m.ReadOnly {
			// Read-only means recursively. An engine that cannot do that
			// leaves a mount below writable, so there nothing below is bound.
			options.ReadOnlyForceRecursive = roRecursive
			options.NonRecursive = !roRecursive
		}
		out = append(out, mount.Mount{Type: mount.TypeBind, Source: cmp.Or(m.Source, m.Path), Target: m.Path, ReadOnly: m.ReadOnly, BindOptions: options})
	}
	return out
}

// gitTrust makes git take repositories of other users, as `git -c` does for the
// programs that it starts. The sandbox's user is not always the workspace's
// owner: the operator may name another, a group may give access, an engine may
// map ids. What git guards against, another user's settings running programs, is
// what a sandbox holds in anyway, and the user's own configuration stays as it
// is. GIT_CONFIG_COUNT would be the documented way, but CLIs keep variables with
// KEY in their names from their commands, and git fails where only the count is
// left.
const gitTrust = "GIT_CONFIG_PARAMETERS='safe.directory=*'"

// Environ is what a command gets: enough to run, and the proxies, of which one
// on this machine's loopback is renamed to where the sandbox finds this machine.
// Secrets come by the spawn frame only, never through the container's
// configuration.
func (r *Runtime) Environ(spec sandbox.Spec) []string {
	env := []string{"PATH=" + path, "HOME=" + Home, "USER=" + account, "LOGNAME=" + account,
		"LANG=" + cmp.Or(os.Getenv("LANG"), "C.UTF-8"), "TERM=" + cmp.Or(os.Getenv("TERM"), "dumb"), gitTrust}
	for _, name := range []string{"TZ", "NO_PROXY", "no_proxy"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+sandboxProxy(v, spec.Network))
		}
	}
	return env
}

// identity is who the commands run as.
type identity struct {
	uid, gid int
	extra    []int
}

func (i identity) String() string { return strconv.Itoa(i.uid) + ":" + strconv.Itoa(i.gid) }

func (i identity) groups() []string {
	var out []string
	for _, g := range i.extra {
		out = append(out, strconv.Itoa(g))
	}
	return out
}

// parseIdentity parses "uid:gid".
func parseIdentity(s string) (identity, error) {
	u, g, ok := strings.Cut(s, ":")
	uid, err1 := strconv.Atoi(u)
	gid, err2 := strconv.Atoi(g)
	if !ok || err1 != nil || err2 != nil || uid < 0 || gid < 0 {
		return identity{}, fmt.Errorf("user %q: want UID:GID in numbers, such as 1000:1000", s)
	}
	return identity{uid: uid, gid: gid}, nil
}

// owner is what is known of the workspace: who owns it, and whether its group
// may write.
type owner struct {
	uid, gid      int
	groupWritable bool
}

// choose is the rule of who the commands run as: what the operator said; root
// on a rootless engine, which is the user outside; the workspace's owner when
// the front end is root; else the front end's own user, with the workspace's
// group where that may write.
func choose(explicit string, rootless bool, self identity, ws owner) (identity, error) {
	switch {
	case explicit != "":
		return parseIdentity(explicit)
	case rootless:
		return identity{}, nil
	case self.uid < 0: // a system without uids: the engine's machine maps files
		return identity{uid: 1000, gid: 1000}, nil
	case self.uid == 0:
		self = identity{uid: ws.uid, gid: ws.gid}
	}
	if ws.groupWritable && ws.gid != self.gid && !slices.Contains(self.extra, ws.gid) {
		self.extra = append(self.extra, ws.gid)
	}
	return self, nil
}
