package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/wire"
)

func (s suite) hostileFiles(t *testing.T) {
	box, spec := s.open(t)
	dir := box.Welcome().FilesDir
	_, err := box.Run(t.Context(), s.sh(spec, "mkdir -p "+dir+" && cd "+dir+` &&
		ln -s /etc/passwd auth.json && mkfifo config.toml && mkdir models_cache.json && ln -s nowhere settings.json &&
		head -c 1048576 /dev/zero >.claude.json && truncate -s 1T .credentials.json`))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := box.Collect(ctx, wire.FileNames...)
	require.NoError(t, err)
	require.Len(t, got, len(wire.FileNames))
	for _, c := range got {
		require.Equal(t, wire.FileRefused, c.State, c.Name)
		require.Empty(t, c.Data)
	}
}

// A signal for the group reaches a grandchild whose parent does not pass it on.
func (s suite) groupSignal(t *testing.T) {
	box, spec := s.open(t)
	p, err := box.Spawn(t.Context(), s.sh(spec,
		`trap : TERM; bash -c 'trap "echo got; exit" TERM; echo up; while :; do sleep 0.02; done' & wait; wait; exit 3`))
	require.NoError(t, err)
	_, err = io.ReadFull(p.Stdout(), make([]byte, 3))
	require.NoError(t, err)
	require.NoError(t, p.Signal(syscall.SIGTERM, false))
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	require.Equal(t, "got\n", string(out))
	exit, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, exit.Code)
}

func (s suite) lifetime(t *testing.T) {
	box, spec := s.open(t)
	cmd := s.sh(spec, "trap '' TERM; sleep 1000")
	cmd.Lifetime = 300 * time.Millisecond
	p, err := box.Spawn(t.Context(), cmd)
	require.NoError(t, err)
	begin := time.Now()
	exit, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, wire.ReasonLifetime, exit.Reason)
	require.Less(t, time.Since(begin), 5*time.Second)
}

// Sandboxes do not touch each other: the end of one ends nothing of the rest.
func (s suite) eightAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			spec := s.Spec(t)
			spec.Grace = 500 * time.Millisecond
			box, err := sandbox.Open(t.Context(), s.Runtime, spec, slog.New(slog.DiscardHandler))
			if !assert.NoError(t, err) {
				return
			}
			p, err := box.Spawn(t.Context(), s.sh(spec, fmt.Sprintf("read x; echo $x; sleep 0.%d; exit %d", i, i)))
			if assert.NoError(t, err) {
				_, _ = fmt.Fprintf(p.Stdin(), "number %d\n", i)
				out, err := io.ReadAll(p.Stdout())
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprintf("number %d\n", i), string(out))
				exit, err := p.Wait(t.Context())
				assert.NoError(t, err)
				assert.Equal(t, i, exit.Code)
			}
			assert.NoError(t, box.Close(context.WithoutCancel(t.Context())))
		})
	}
	all.Wait()
}

// rounds is how often a test of what is left runs.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("MCP_AGENTS_ROUNDS")); err == nil && n > 0 {
		return n
	}
	return 3
}

// A front end is killed while its command has daemons that ignore every polite
// signal: within the grace and 2 s no process, container or private home is
// left. Another sandbox lives on.
func (s suite) nothingLeft(t *testing.T) {
	other, otherSpec := s.open(t)
	alive, err := other.Spawn(t.Context(), s.sh(otherSpec, "read x; echo alive"))
	require.NoError(t, err)
	for round := range rounds() {
		spec := s.Spec(t)
		spec.ID = fmt.Sprintf("left%d%d", time.Now().UnixNano(), round)
		spec.Grace = 500 * time.Millisecond
		mark := "sleeper-" + spec.ID
		startFrontEnd(t, frontEndJob{Spec: spec, Script: `trap '' TERM HUP; for i in 1 2 3; do
			(setsid bash -c "trap '' TERM HUP INT; exec -a ` + mark + ` sleep 300" >/dev/null 2>&1 </dev/null &) ; done
			echo up; exec -a ` + mark + ` sleep 300`})
		begin := time.Now()
		limit := spec.Grace + 2*time.Second
		require.Eventually(t, func() bool { return len(withArgument(mark)) == 0 && len(s.Left(spec)) == 0 }, patience, 20*time.Millisecond,
			"left: %v %v", withArgument(mark), s.Left(spec))
		t.Log("gone after", time.Since(begin).Round(time.Millisecond))
		assert.Less(t, time.Since(begin), limit)
	}
	_, err = io.WriteString(alive.Stdin(), "\n")
	require.NoError(t, err)
	out, err := io.ReadAll(alive.Stdout())
	require.NoError(t, err)
	require.Equal(t, "alive\n", string(out))
}

// withArgument lists the processes of this machine with mark as an argument,
// those in containers of an engine on this machine among them.
func withArgument(mark string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err == nil && bytes.HasPrefix(b, []byte(mark)) {
			found = append(found, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}
