// Package sandboxtest is the test suite that every runtime must pass.
package sandboxtest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/wire"
)

// patience bounds every wait of the suite, on a slow machine too.
const patience = 30 * time.Second

// Subject is a runtime under test.
type Subject struct {
	sandbox.Runtime
	// Spec is a new specification for a test.
	Spec func(*testing.T) sandbox.Spec
	// Left lists what is left of a sandbox outside its processes: its
	// container, its private home.
	Left func(sandbox.Spec) []string
}

// Run runs the suite. Its commands need bash, cat, head, setsid, sleep, stty
// and wc.
func Run(t *testing.T, subject Subject) {
	s := suite{subject}
	for name, test := range map[string]func(*testing.T){
		"echo":                         s.echo,
		"exit statuses":                s.exits,
		"not found, not executable":    s.spawnFailures,
		"large output is complete":     s.largeOutput,
		"unread output holds nothing":  s.unread,
		"unread errors, then given up": s.unreadErrors,
		"input of every size":          s.inputs,
		"input that nobody reads":      s.unreadInput,
		"bytes one by one":             s.interleaved,
		"files in and out":             s.files,
		"hostile files":                s.hostileFiles,
		"stragglers are killed":        s.stragglers,
		"ignored TERM":                 s.ignoredTerm,
		"signal to the group":          s.groupSignal,
		"lifetime":                     s.lifetime,
		"terminal":                     s.terminal,
		"eight at once":                s.eightAtOnce,
		"nothing left":                 s.nothingLeft,
	} {
		t.Run(name, test)
	}
}

type suite struct{ Subject }

func (s suite) open(t *testing.T) (*sandbox.Sandbox, sandbox.Spec) {
	spec := s.Spec(t)
	if spec.Grace == 0 {
		spec.Grace = 500 * time.Millisecond
	}
	box, err := sandbox.Open(t.Context(), s.Runtime, spec, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		begin := time.Now()
		require.NoError(t, box.Close(ctx))
		if took := time.Since(begin); took > time.Second {
			t.Log("closed only after", took)
		}
	})
	return box, spec
}

func (s suite) sh(spec sandbox.Spec, script string) sandbox.Command {
	return sandbox.Command{Argv: []string{"bash", "-c", script}, Env: s.Environ(spec), Dir: "/", Stdin: true}
}

func (s suite) echo(t *testing.T) {
	box, spec := s.open(t)
	p, err := box.Spawn(t.Context(), s.sh(spec, "cat; echo done >&2"))
	require.NoError(t, err)
	_, err = io.WriteString(p.Stdin(), "héllo\n")
	require.NoError(t, err)
	require.NoError(t, p.Stdin().Close())
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	require.Equal(t, "héllo\n", string(out))
	errOut, err := io.ReadAll(p.Stderr())
	require.NoError(t, err)
	require.Equal(t, "done\n", string(errOut))
	exit, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, wire.Exit{Reason: wire.ReasonExit, Bytes: [3]int64{7, 7, 5}}, exit)
}

func (s suite) exits(t *testing.T) {
	box, spec := s.open(t)
	for _, tt := range []struct {
		script string
		code   int
		signal int
		reason wire.Reason
	}{
		{"exit 0", 0, 0, wire.ReasonExit}, {"exit 7", 7, 0, wire.ReasonExit}, {"exit 255", 255, 0, wire.ReasonExit},
		{"kill -TERM $$", 143, 15, wire.ReasonSignal}, {"kill -USR1 $$", 138, 10, wire.ReasonSignal}, {"kill -KILL $$", 137, 9, wire.ReasonSignal},
	} {
		out, err := box.Run(t.Context(), s.sh(spec, tt.script))
		require.NoError(t, err, tt.script)
		require.Equal(t, []any{tt.code, tt.signal, tt.reason}, []any{out.Exit.Code, out.Exit.Signal, out.Exit.Reason}, tt.script)
	}
}

func (s suite) spawnFailures(t *testing.T) {
	box, spec := s.open(t)
	for _, tt := range []struct {
		cmd  sandbox.Command
		code int
	}{
		{sandbox.Command{Argv: []string{"no-such-command"}, Dir: "/"}, 127},
		{sandbox.Command{Argv: []string{"/no/such/command"}, Dir: "/"}, 127},
		{sandbox.Command{Argv: []string{"/etc/passwd"}, Dir: "/"}, 126},
		{sandbox.Command{Argv: []string{"true"}, Dir: "/no/such/directory"}, 126},
	} {
		tt.cmd.Env = s.Environ(spec)
		_, err := box.Run(t.Context(), tt.cmd)
		var failed *sandbox.SpawnError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, tt.code, failed.Code, failed.Text)
	}
}

func (s suite) largeOutput(t *testing.T) {
	box, spec := s.open(t)
	p, err := box.Spawn(t.Context(), s.sh(spec, "head -c 50000000 /dev/zero; echo END"))
	require.NoError(t, err)
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	require.Len(t, out, 50000004)
	require.True(t, bytes.HasSuffix(out, []byte("END\n")))
}

func (s suite) unread(t *testing.T) {
	box, spec := s.open(t)
	p, err := box.Spawn(t.Context(), s.sh(spec, "trap '' TERM; yes"))
	require.NoError(t, err)
	_, err = io.ReadFull(p.Stdout(), make([]byte, 2)) // the trap is set
	require.NoError(t, err)
	begin := time.Now()
	exit, err := p.Stop(t.Context())
	require.NoError(t, err)
	require.Equal(t, int(syscall.SIGKILL), exit.Signal)
	t.Log("stopped after", time.Since(begin))
}

func (s suite) files(t *testing.T) {
	box, spec := s.open(t)
	require.NoError(t, box.PutFile(wire.File{Name: "auth.json", Data: []byte(`{"a":1}`)}))
	dir := box.Welcome().FilesDir
	out, err := box.Run(t.Context(), s.sh(spec, "cd "+dir+" && stat -c %a . auth.json && cat auth.json"))
	require.NoError(t, err)
	require.Equal(t, "700\n600\n{\"a\":1}", string(out.Stdout), string(out.Stderr))
	changed := make(chan wire.Collected, 8)
	cmd := s.sh(spec, "cd "+dir+" && echo '{\"a\":2}' > new && mv new auth.json; read x; ln -s /etc/passwd config.toml; mkfifo models_cache.json")
	cmd.Watch = []string{"auth.json"}
	cmd.Changed = func(c wire.Collected) { changed <- c }
	p, err := box.Spawn(t.Context(), cmd)
	require.NoError(t, err)
	require.Equal(t, "{\"a\":2}\n", string((<-changed).Data), "reported while the command runs")
	require.NoError(t, p.Stdin().Close())
	_, err = p.Wait(t.Context())
	require.NoError(t, err)
	got, err := box.Collect(t.Context(), "auth.json", "config.toml", "models_cache.json", "settings.json")
	require.NoError(t, err)
	require.Equal(t, []wire.FileState{wire.FilePresent, wire.FileRefused, wire.FileRefused, wire.FileMissing},
		[]wire.FileState{got[0].State, got[1].State, got[2].State, got[3].State})
	require.Equal(t, "{\"a\":2}\n", string(got[0].Data))
}

func (s suite) stragglers(t *testing.T) {
	box, spec := s.open(t)
	out, err := box.Run(t.Context(), s.sh(spec, "setsid sh -c 'trap \"\" TERM HUP; sleep 97531 & wait' >/dev/null 2>&1 & (setsid sleep 97531 &) ; exit 3"))
	require.NoError(t, err)
	require.Equal(t, 3, out.Exit.Code)
	out, err = box.Run(t.Context(), s.sh(spec, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"))
	require.NoError(t, err)
	require.False(t, strings.Contains(string(out.Stdout), "sleep 97531"), string(out.Stdout))
}

func (s suite) ignoredTerm(t *testing.T) {
	box, spec := s.open(t)
	p, err := box.Spawn(t.Context(), s.sh(spec, "trap '' TERM; echo up; sleep 1000"))
	require.NoError(t, err)
	_, err = io.ReadFull(p.Stdout(), make([]byte, 3))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	begin := time.Now()
	require.NoError(t, box.Close(ctx))
	require.Less(t, time.Since(begin), spec.Grace+3*time.Second)
}
