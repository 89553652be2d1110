package docker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
)

func TestSandboxProxy(t *testing.T) {
	for _, tt := range []struct{ address, want string }{
		{"http://127.0.0.1:3128", "http://host.docker.internal:3128"},
		{"http://localhost:3128/", "http://host.docker.internal:3128/"},
		{"HTTP://LOCALHOST", "HTTP://host.docker.internal"},
		{"127.0.0.1:3128", "host.docker.internal:3128"},
		{"localhost", "host.docker.internal"},
		{"http://[::1]:3128", "http://host.docker.internal:3128"},
		{"socks5h://127.8.9.1:1080", "socks5h://host.docker.internal:1080"},
		{"http://me:p%40ss@localhost:3128", "http://me:p%40ss@host.docker.internal:3128"},
		{"http://proxy.corp:3128", "http://proxy.corp:3128"},
		{"http://localhost.corp:3128", "http://localhost.corp:3128"},
		{"http://10.127.0.1:3128", "http://10.127.0.1:3128"},
		{"http://localhost@proxy:3128", "http://localhost@proxy:3128"},
		{"", ""},
		{"http://", "http://"},
	} {
		for _, network := range []string{"", "bridge", "team"} {
			assert.Equal(t, tt.want, sandboxProxy(tt.address, network), network)
		}
		for _, network := range []string{"host", "none", "container:abc"} { // the loopback is the machine's, or nobody's
			assert.Equal(t, tt.address, sandboxProxy(tt.address, network), network)
		}
	}
}

// A proxy's password goes to the command, and not into the container's
// configuration, which the engine shows to everybody who may ask it.
func TestProxiesStayOutOfTheConfiguration(t *testing.T) {
	t.Setenv("https_proxy", "http://me:secret@127.0.0.1:3128")
	t.Setenv("no_proxy", "localhost")
	rt, err := New("unix:///nonexistent.sock")
	require.NoError(t, err)
	env := rt.Environ(sandbox.Spec{})
	require.Contains(t, env, "https_proxy=http://me:secret@host.docker.internal:3128")
	require.Contains(t, env, "no_proxy=localhost")
	config, _ := configure(sandbox.Spec{}, facts{})
	require.NotContains(t, strings.Join(config.Env, " "), "secret")
}

func TestNamedNetworksReachTheMachine(t *testing.T) {
	for network, want := range map[string]int{"": 1, "bridge": 1, "team": 1, "none": 0, "host": 0, "container:abc": 0} {
		_, host := configure(sandbox.Spec{Network: network}, facts{})
		require.Len(t, host.ExtraHosts, want, network)
	}
}
