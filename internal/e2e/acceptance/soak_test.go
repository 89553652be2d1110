package acceptance

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/sandbox/local"
	"mcpagents/internal/sandbox/wire"
	"mcpagents/internal/testkit/images"
	"mcpagents/internal/testkit/wait"
)

var (
	soakRounds = flag.Int("soak", 10, "rounds of the sandbox soak on each runtime")
	soakSeed   = flag.Uint64("seed", 0, "seed of the sandbox soak; 0 takes one from the clock")
)

// soak uses sandboxes at random, in this process.
type soak struct {
	rt      sandbox.Runtime
	spec    sandbox.Spec
	opens   time.Duration // about what an opening takes
	random  *rand.Rand
	kill    func(box *sandbox.Sandbox) // of the sandbox's init, from outside
	counted map[string]int             // rounds by how they ended
}

// TestSoakSandbox starts, uses, cancels and kills sandboxes at random points,
// and then looks for anything that is left: on the machine, and in this
// process.
func TestSoakSandbox(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again with: -run TestSoakSandbox -soak %d -seed %d", *soakRounds, seed)
	t.Run("local", func(t *testing.T) {
		rt, err := local.New(built.agents, "sandbox-init")
		require.NoError(t, err)
		s := &soak{rt: rt, opens: 20 * time.Millisecond, spec: sandbox.Spec{HomeRoot: filepath.Join(t.TempDir(), "homes"), HomePrefix: "mcp-agents-soak-"},
			kill: func(box *sandbox.Sandbox) {
				pid, _ := strconv.Atoi(box.ID())
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}}
		s.run(t, seed, func(t *testing.T) int {
			homes, err := os.ReadDir(s.spec.HomeRoot)
			require.NoError(t, err)
			return len(homes)
		})
	})
	t.Run("docker", func(t *testing.T) {
		image := images.Codex(t)
		rt, err := docker.New("")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, rt.Close()) })
		engine := engineClient(t, "")
		s := &soak{rt: rt, opens: 500 * time.Millisecond, spec: sandbox.Spec{Image: image, Network: "none", User: "1000:1000", FilesDir: ".codex"},
			kill: func(box *sandbox.Sandbox) { _ = engine.ContainerKill(context.Background(), box.ID(), "KILL") }}
		s.run(t, seed, func(t *testing.T) int {
			list, err := engine.ContainerList(t.Context(), container.ListOptions{All: true,
				Filters: filters.NewArgs(filters.Arg("label", docker.LabelInstance+"="+s.spec.Instance))})
			require.NoError(t, err)
			return len(list)
		})
	})
}

// run soaks. Places counts the containers or homes that are there.
func (s *soak) run(t *testing.T, seed uint64, places func(*testing.T) int) {
	s.random, s.counted = rand.New(rand.NewPCG(seed, 0)), map[string]int{}
	s.spec.Provider, s.spec.Instance, s.spec.Grace = "soak", fmt.Sprintf("soak-%d-%d", os.Getpid(), seed), 300*time.Millisecond
	warm := min(5, *soakRounds)
	var before footprint
	for i := range warm + *soakRounds {
		if i == warm {
			before = measure()
		}
		s.round(t)
	}
	after := measure()
	processes := processesOf(s.spec.Instance)
	fmt.Printf("soak %s: %d rounds %v; left: %d containers or homes, %d processes; %s, before %s\n", s.rt.Name(), warm+*soakRounds, s.counted,
		places(t), len(processes), after, before)
	require.Zero(t, places(t))
	require.Empty(t, processes)
	require.LessOrEqual(t, after.descriptors, before.descriptors+3, "descriptors")
	require.LessOrEqual(t, after.goroutines, before.goroutines+4, "goroutines")
	require.Less(t, after.heap, before.heap+4<<20, "bytes on the heap")
}

// round is one sandbox: its opening may be cancelled, then it is used in one of
// some ways, and ends in one of some ways.
func (s *soak) round(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit)
	defer cancel()
	opening, stop := context.WithCancel(ctx)
	defer stop()
	if s.random.IntN(5) == 0 {
		timer := time.AfterFunc(time.Duration(s.random.Int64N(int64(s.opens))), stop)
		defer timer.Stop()
	}
	box, err := sandbox.Open(opening, s.rt, s.spec, slog.New(slog.DiscardHandler))
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
		s.counted["cancelled"]++
		return
	}
	use := []string{"echo", "flood", "tree", "idle"}[s.random.IntN(4)]
	end := []string{"close", "stop", "kill", "kill and close at once"}[s.random.IntN(4)]
	p := s.use(ctx, t, box, use)
	switch {
	case end == "stop" && p != nil:
		_, err = p.Stop(ctx)
		require.NoError(t, err)
	case end == "kill":
		s.kill(box)
		select {
		case <-box.Ended():
		case <-ctx.Done():
			require.FailNow(t, "a killed sandbox did not end")
		}
	case end == "kill and close at once":
		go s.kill(box)
	}
	require.NoError(t, box.Close(ctx), "%s, %s", use, end)
	s.counted[end]++
}

// use starts a command and leaves it running or ended.
func (s *soak) use(ctx context.Context, t *testing.T, box *sandbox.Sandbox, how string) *sandbox.Process {
	require.NoError(t, box.PutFile(wire.File{Name: "auth.json", Data: []byte(`{"k":"v"}`)}))
	command, ok := map[string]string{
		"echo":  "cat",
		"flood": "trap '' TERM; yes",
		"tree":  "for i in 1 2 3 4 5 6; do setsid bash -c 'trap \"\" TERM HUP; sleep 300 & wait' & done; echo up; wait",
	}[how]
	if !ok {
		return nil
	}
	p, err := box.Spawn(ctx, sandbox.Command{Argv: []string{"bash", "-c", command}, Dir: "/", Stdin: true,
		Env: append(s.rt.Environ(s.spec), "SOAK="+s.spec.Instance), Watch: []string{"auth.json"}})
	require.NoError(t, err)
	switch how {
	case "echo":
		n := s.random.IntN(1 << 20)
		go func() { _, _ = io.Copy(p.Stdin(), io.LimitReader(zeroes{}, int64(n))) }()
		got, err := io.CopyN(io.Discard, p.Stdout(), int64(n))
		require.NoError(t, err)
		require.EqualValues(t, n, got)
	case "flood", "tree":
		_, err = io.ReadFull(p.Stdout(), make([]byte, 2))
		require.NoError(t, err)
		require.NotEmpty(t, processesOf(s.spec.Instance), "the observer must see what runs, or it could not see what is left")
	}
	return p
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { return len(p), nil }

// processesOf lists the processes of a soak.
func processesOf(instance string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err == nil && strings.Contains(string(env), "SOAK="+instance) {
			found = append(found, filepath.Base(dir))
		}
	}
	return found
}

// footprint is what this process uses.
type footprint struct {
	descriptors, goroutines int
	heap                    uint64 // bytes in use after a collection
}

func (f footprint) String() string {
	return fmt.Sprintf("%d descriptors, %d goroutines, %d KiB", f.descriptors, f.goroutines, f.heap>>10)
}

func measure() footprint {
	var f footprint
	// What ended a moment ago may still be on its way out.
	time.Sleep(200 * time.Millisecond)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.heap, f.goroutines = m.HeapAlloc, runtime.NumGoroutine()
	fds, _ := os.ReadDir("/proc/self/fd")
	f.descriptors = len(fds)
	return f
}
