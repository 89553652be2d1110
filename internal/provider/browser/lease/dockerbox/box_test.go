package dockerbox

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/sandbox"
)

var wanted = lease.Request{Session: "s", LocalPort: 9222, Viewport: "800x600"}

// A lease is a browser in a box; the box outlives it, and the tool server's
// sandbox is in the box's namespace.
func TestLeaseInABox(t *testing.T) {
	defer goleak.VerifyNone(t)
	rt := &fakeRuntime{says: saysOne}
	b := fakeBox(t, rt)
	child, err := b.Start(t.Context(), []string{"--browserUrl", "http://127.0.0.1:9222"})
	require.NoError(t, err)
	rec, err := b.Acquire(t.Context(), wanted)
	require.NoError(t, err)
	require.Equal(t, lease.Record{Session: "s", Generation: "box1-1", BrowserURL: "http://127.0.0.1:9222"}, rec)
	id, err := b.Identity(t.Context(), rec)
	require.NoError(t, err)
	require.Equal(t, "one@box1", id)
	require.NoError(t, b.Release(t.Context(), rec, lease.Idle))
	again, err := b.Acquire(t.Context(), wanted)
	require.NoError(t, err)
	require.Equal(t, "box1-2", again.Generation)
	_, err = b.Identity(t.Context(), rec)
	require.Error(t, err, "of a lease that has ended")
	state, err := b.Status(t.Context(), rec)
	require.NoError(t, err)
	require.Equal(t, lease.Lost, state)
	require.Equal(t, "chrome-devtools-mcp chromium-headless-shell find chromium-headless-shell", rt.commands())
	require.Equal(t, []string{"chrome-devtools-mcp", "--browserUrl", "http://127.0.0.1:9222", "--performanceCrux=false", "--workspace", "/w"}, rt.argv[0])

	box, tools := rt.specs[0], rt.specs[1]
	require.Equal(t, "none", box.Network)
	require.True(t, box.NotRoot)
	require.Equal(t, []sandbox.Mount{{Path: "/w", ReadOnly: true}}, box.Mounts)
	require.Equal(t, "container:box1", tools.Network)
	require.Equal(t, []sandbox.Mount{{Path: "/w"}}, tools.Mounts)
	require.NoError(t, child.Close(context.Background()))
	require.NoError(t, b.Close(context.Background()))
	_, err = b.Acquire(t.Context(), wanted)
	require.ErrorContains(t, err, "was closed")
}

// Another browser at the address, and one that does not say who it is.
func TestIdentityOfAnother(t *testing.T) {
	rt := &fakeRuntime{says: saysOne}
	b := fakeBox(t, rt)
	rec, err := b.Acquire(t.Context(), wanted)
	require.NoError(t, err)
	rt.answers = func() (string, error) { return "two", nil }
	id, err := b.Identity(t.Context(), rec)
	require.NoError(t, err)
	require.Equal(t, "two instead of one@box1", id)
	rt.answers = func() (string, error) { return "", errors.New("no") }
	_, err = b.Identity(t.Context(), rec)
	require.ErrorContains(t, err, "500")
}

func TestBrowserThatDoesNotStart(t *testing.T) {
	for name, tt := range map[string]struct {
		says string
		want string
	}{
		"a host without user namespaces": {"[1:1:FATAL:zygote_host_impl_linux.cc(228)] Zygote process exited prematurely", "does not let Chromium make its own sandbox"},
		"something else":                 {"error while loading shared libraries", "exit status 139 (exit): error while loading shared libraries"},
	} {
		t.Run(name, func(t *testing.T) {
			b := fakeBox(t, &fakeRuntime{says: tt.says, exits: true})
			_, err := b.Acquire(t.Context(), wanted)
			var failed *lease.ProvisioningError
			require.ErrorAs(t, err, &failed)
			require.Contains(t, failed.Text, tt.want)
		})
	}
	t.Run("its port is taken", func(t *testing.T) {
		b := fakeBox(t, &fakeRuntime{says: "bind() failed: Address already in use (98)"})
		_, err := b.Acquire(t.Context(), wanted)
		require.ErrorIs(t, err, lease.ErrPortTaken)
	})
	t.Run("nobody waits any more", func(t *testing.T) {
		b := fakeBox(t, &fakeRuntime{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := b.Acquire(ctx, wanted)
		require.Error(t, err)
	})
	t.Run("no engine", func(t *testing.T) {
		b := fakeBox(t, &fakeRuntime{refuse: errors.New("the engine is not running")})
		_, err := b.Acquire(t.Context(), wanted)
		var none *lease.UnavailableError
		require.ErrorAs(t, err, &none)
		require.Equal(t, lease.NoBox, none.Cause)
		require.Contains(t, none.Text, "no browser box available")
		require.Contains(t, none.Text, "the engine is not running")
	})
}

// A box that is lost takes its tool server's namespace with it: the lease is
// refused until that was started again.
func TestLostBox(t *testing.T) {
	rt := &fakeRuntime{says: saysOne}
	b := fakeBox(t, rt)
	child, err := b.Start(t.Context(), nil)
	require.NoError(t, err)
	rec, err := b.Acquire(t.Context(), wanted)
	require.NoError(t, err)
	_ = rt.started[0].far.Close()
	<-b.open.Ended()
	_, err = b.Identity(t.Context(), rec)
	require.ErrorContains(t, err, "box is gone")
	_, err = b.Acquire(t.Context(), wanted)
	require.ErrorIs(t, err, lease.ErrPortTaken)
	require.NoError(t, child.Close(context.Background()))
	child, err = b.Start(t.Context(), nil)
	require.NoError(t, err)
	rec, err = b.Acquire(t.Context(), wanted)
	require.NoError(t, err)
	id, err := b.Identity(t.Context(), rec)
	require.NoError(t, err)
	require.Equal(t, "one@box3", id)
	require.NoError(t, child.Close(context.Background()))
}

// Ports differ, so that one that is refused is not given out again at once.
func TestPorts(t *testing.T) {
	b := fakeBox(t, &fakeRuntime{})
	seen := map[int]bool{}
	for range lastPort - firstPort + 1 {
		port, err := b.Port(t.Context())
		require.NoError(t, err)
		require.False(t, seen[port])
		seen[port] = true
	}
	port, err := b.Port(t.Context())
	require.NoError(t, err)
	require.Equal(t, firstPort, port)
	_, err = b.Acquire(t.Context(), lease.Request{Session: "s", LocalPort: 9222, AppPort: 1, Viewport: "1x1"})
	require.ErrorContains(t, err, "dev server not reachable")
	require.NotContains(t, appAnswers(t.Context(), 1, false).Error(), "container")
	require.ErrorContains(t, appAnswers(t.Context(), 1, true), "call again; mcp-agents runs in a container, whose loopback is its own unless it is started with --network host")
}
