package docker

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
)

// The whole configuration of a default sandbox, literally: a new option must
// be seen here.
func TestConfigure(t *testing.T) {
	pids := int64(512)
	spec := sandbox.Spec{ID: "abc", Instance: "i", Provider: "codex", Image: "img", Mounts: []sandbox.Mount{{Path: "/w"}}}
	config, host := configure(spec, facts{user: identity{uid: 1000, gid: 1001}, seccomp: "{}", version: "v"})
	require.Equal(t, &container.Config{
		Image: "img", User: "1000:1001", WorkingDir: "/", Entrypoint: []string{"/usr/local/bin/sandbox-init", "-build", "v"}, Cmd: []string{},
		Env:         []string{"HOME=/home/agent", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true, Tty: false,
		StopSignal: "SIGKILL",
		Labels:     map[string]string{"mcp-agents.sandbox": "abc", "mcp-agents.instance": "i", "mcp-agents.provider": "codex"},
	}, config)
	require.Equal(t, &container.HostConfig{
		AutoRemove: true, LogConfig: container.LogConfig{Type: "none"}, NetworkMode: "bridge",
		ExtraHosts: []string{"host.docker.internal:host-gateway"},
		CapDrop:    []string{"ALL"}, SecurityOpt: []string{"no-new-privileges", "seccomp={}"}, ReadonlyRootfs: true, OomScoreAdj: 200,
		Tmpfs: map[string]string{
			"/home/agent": "rw,exec,nosuid,nodev,size=1073741824,mode=0700,uid=1000,gid=1001",
			"/tmp":        "rw,exec,nosuid,nodev,size=1073741824,mode=1777"},
		Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/w", Target: "/w",
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationPrivate}}},
		Resources: container.Resources{Memory: 4 << 30, MemorySwap: 4 << 30, NanoCPUs: 2e9, PidsLimit: &pids},
	}, host)
}

func TestConfigureVariants(t *testing.T) {
	const gateway = "host.docker.internal:host-gateway"
	ordinary := facts{user: identity{uid: 1000, gid: 1000}}
	for name, tt := range map[string]struct {
		spec  sandbox.Spec
		facts facts
		check func(*testing.T, *container.HostConfig)
	}{
		"root gets SETFCAP and nothing else": {sandbox.Spec{}, facts{}, func(t *testing.T, h *container.HostConfig) {
			require.Equal(t, []string{"SETFCAP"}, []string(h.CapAdd))
			require.Equal(t, []string{"ALL"}, []string(h.CapDrop))
			require.Equal(t, []string{"no-new-privileges"}, h.SecurityOpt)
		}},
		"root of a rootless engine gets none": {sandbox.Spec{}, facts{rootless: true}, func(t *testing.T, h *container.HostConfig) {
			require.Empty(t, h.CapAdd)
		}},
		"others get none": {sandbox.Spec{}, ordinary, func(t *testing.T, h *container.HostConfig) {
			require.Empty(t, h.CapAdd)
			require.False(t, h.Privileged)
		}},
		"read-only on an old engine": {sandbox.Spec{Mounts: []sandbox.Mount{{Path: "/w", ReadOnly: true}}}, ordinary, func(t *testing.T, h *container.HostConfig) {
			require.Equal(t, []mount.Mount{{Type: mount.TypeBind, Source: "/w", Target: "/w", ReadOnly: true,
				BindOptions: &mount.BindOptions{Propagation: mount.PropagationPrivate, NonRecursive: true}}}, h.Mounts)
		}},
		"read-only on a new engine": {sandbox.Spec{Mounts: []sandbox.Mount{{Path: "/w", Source: "/host/w", ReadOnly: true}}},
			facts{user: ordinary.user, roRecursive: true}, func(t *testing.T, h *container.HostConfig) {
				require.Equal(t, []mount.Mount{{Type: mount.TypeBind, Source: "/host/w", Target: "/w", ReadOnly: true,
					BindOptions: &mount.BindOptions{Propagation: mount.PropagationPrivate, ReadOnlyForceRecursive: true}}}, h.Mounts)
			}},
		"no network": {sandbox.Spec{Network: "none"}, ordinary, func(t *testing.T, h *container.HostConfig) {
			require.Equal(t, container.NetworkMode("none"), h.NetworkMode)
			require.Empty(t, h.ExtraHosts)
		}},
		"another's network": {sandbox.Spec{Network: "container:abc"}, ordinary, func(t *testing.T, h *container.HostConfig) {
			require.Equal(t, container.NetworkMode("container:abc"), h.NetworkMode)
			require.Empty(t, h.ExtraHosts)
		}},
		"bridge by name": {sandbox.Spec{Network: "bridge"}, ordinary, func(t *testing.T, h *container.HostConfig) {
			require.Equal(t, []string{gateway}, h.ExtraHosts)
		}},
		"limits": {sandbox.Spec{Limits: sandbox.Limits{Memory: 1 << 30, CPUs: 0.5, PIDs: 64}}, ordinary, func(t *testing.T, h *container.HostConfig) {
			require.Equal(t, []int64{1 << 30, 1 << 30, 5e8, 64}, []int64{h.Memory, h.MemorySwap, h.NanoCPUs, *h.PidsLimit})
			require.Contains(t, h.Tmpfs[Home], "size=268435456,", "both tmpfs together are half of the memory")
			require.Contains(t, h.Tmpfs["/tmp"], "size=268435456,")
		}},
		"groups and the OCI runtime": {sandbox.Spec{OCIRuntime: "runsc"}, facts{user: identity{uid: 5, gid: 6, extra: []int{7, 8}}}, func(t *testing.T, h *container.HostConfig) {
			require.Equal(t, []string{"7", "8"}, h.GroupAdd)
			require.Equal(t, "runsc", h.Runtime)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			config, host := configure(tt.spec, tt.facts)
			tt.check(t, host)
			// What holds for each of them.
			require.False(t, config.Tty)
			require.True(t, config.OpenStdin && config.StdinOnce && host.AutoRemove && host.ReadonlyRootfs)
			require.Empty(t, host.Binds)
			require.Equal(t, "none", host.LogConfig.Type)
		})
	}
}

func TestChoose(t *testing.T) {
	for _, tt := range []struct {
		name     string
		explicit string
		rootless bool
		self     identity
		ws       owner
		want     identity
	}{
		{"own workspace", "", false, identity{uid: 1000, gid: 1000}, owner{uid: 1000, gid: 1000}, identity{uid: 1000, gid: 1000}},
		{"another's workspace", "", false, identity{uid: 1000, gid: 1000}, owner{uid: 1001, gid: 1001}, identity{uid: 1000, gid: 1000}},
		{"a group may write", "", false, identity{uid: 1000, gid: 1000}, owner{uid: 1001, gid: 50, groupWritable: true}, identity{uid: 1000, gid: 1000, extra: []int{50}}},
		{"the group is ours", "", false, identity{uid: 1000, gid: 50}, owner{uid: 1001, gid: 50, groupWritable: true}, identity{uid: 1000, gid: 50}},
		{"root, user's workspace", "", false, identity{}, owner{uid: 1001, gid: 1002, groupWritable: true}, identity{uid: 1001, gid: 1002}},
		{"root, root's workspace", "", false, identity{}, owner{}, identity{}},
		{"rootless engine", "", true, identity{uid: 1000, gid: 1000}, owner{uid: 1000, gid: 1000}, identity{}},
		{"as told", "7:8", true, identity{}, owner{uid: 1001}, identity{uid: 7, gid: 8}},
		{"no uids here", "", false, identity{uid: -1, gid: -1}, owner{}, identity{uid: 1000, gid: 1000}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := choose(tt.explicit, tt.rootless, tt.self, tt.ws)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	for _, bad := range []string{"1000", ":", "a:b", "-1:0", "1000:", "root:root", "1:2:3", " 1:1"} {
		_, err := choose(bad, false, identity{}, owner{})
		require.ErrorContains(t, err, "want UID:GID in numbers", bad)
	}
}

// Chromium's sandbox refuses root; everybody else keeps the rule's user.
func TestNotRoot(t *testing.T) {
	for _, tt := range []struct {
		user    string
		notRoot bool
		want    string
	}{{"0:0", true, "10001:10001"}, {"0:0", false, "0:0"}, {"1000:100", true, "1000:100"}} {
		f, err := factsOf(Engine{}, sandbox.Spec{User: tt.user, NotRoot: tt.notRoot})
		require.NoError(t, err)
		require.Equal(t, tt.want, f.user.String())
	}
}
