// Command bench measures what a sandbox costs, each figure beside the same thing done
// bare in the same run, and prints the ratios with their aims. `make bench`
// runs it. It needs an engine with the images, and nothing else running. Names
// on the command line, such as "claude", choose what is measured.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"mcpagents/internal/sandbox/docker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run: the programs and directories that the measurements share.
type bench struct {
	dir, agents, fake string // our programs; fake is the fake Codex
	image, fakeImage  string
	workspace, login  string
	table             *tabwriter.Writer
}

func run(ctx context.Context) error {
	b := &bench{image: docker.DefaultImage("codex"), fakeImage: "mcp-agents-test/fakecodex:latest",
		table: tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)}
	if err := b.setUp(ctx); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	fmt.Fprintln(b.table, "what\tours\tbare\tratio\taim")
	for _, m := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"start", b.startContainer}, {"local start", b.startLocal}, {"cold sandbox", b.coldSandbox}, {"spare", b.spares},
		{"round trip", b.roundTrip}, {"frames beside calls", b.frames}, {"status poll", b.statusPoll}, {"retained jobs", b.retainedJobs},
		{"throughput", b.throughput}, {"local throughput", b.localThroughput},
		{"idle memory", b.idleMemory}, {"claude", b.claude}, {"eight at once", b.eightAtOnce}, {"spares' memory", b.spareMemory},
		{"browser start", b.browserStart}, {"browser calls", b.browserCalls},
	} {
		if chosen := os.Args[1:]; len(chosen) > 0 && !slices.Contains(chosen, m.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring:", m.name)
		if err := m.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return b.table.Flush()
}

func (b *bench) setUp(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp("", "mcp-agents-bench-"); err != nil {
		return err
	}
	b.agents, b.fake = filepath.Join(b.dir, "mcp-agents"), filepath.Join(b.dir, "fake", "codex")
	b.workspace, b.login = filepath.Join(b.dir, "workspace"), filepath.Join(b.dir, "login")
	for _, dir := range []string{b.workspace, b.login} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		if err := os.Chown(b.workspace, 1000, 1000); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(b.login, "auth.json"), []byte(`{"OPENAI_API_KEY":"made-up"}`), 0o600); err != nil {
		return err
	}
	for out, pkg := range map[string]string{b.agents: "mcpagents/cmd/mcp-agents", b.fake: "mcpagents/internal/testkit/fakecodex"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", pkg, err, out)
		}
	}
	dockerfile := "ARG BASE\nFROM $BASE\nCOPY codex /usr/local/sbin/codex\n"
	if err := os.WriteFile(filepath.Join(b.dir, "fake", "Dockerfile"), []byte(dockerfile), 0o644); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "docker", "build", "-q", "--build-arg", "BASE="+b.image, "-t", b.fakeImage, filepath.Dir(b.fake)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the fake image (is there an engine, and `make images`?): %w: %s", err, out)
	}
	return nil
}

// ratio prints a row: medians, their ratio, and the aim.
func (b *bench) ratio(what string, ours, bare time.Duration, aim string) {
	fmt.Fprintf(b.table, "%s\t%s\t%s\t%.3f\t%s\n", what, short(ours), short(bare), float64(ours)/float64(bare), aim)
}

func (b *bench) row(what, ours, bare, ratio, aim string) {
	fmt.Fprintf(b.table, "%s\t%s\t%s\t%s\t%s\n", what, ours, bare, ratio, aim)
}

func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d.Nanoseconds())/1e3)
	default:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3)
	}
}

// alternate measures two things in turn, so that what disturbs the machine
// disturbs both, and returns the medians.
func alternate(rounds int, ours, bare func() (time.Duration, error)) (time.Duration, time.Duration, error) {
	var a, b []time.Duration
	for i := range rounds + 1 {
		x, err := ours()
		if err != nil {
			return 0, 0, fmt.Errorf("ours: %w", err)
		}
		y, err := bare()
		if err != nil {
			return 0, 0, fmt.Errorf("bare: %w", err)
		}
		if i > 0 { // the first warms caches
			a, b = append(a, x), append(b, y)
		}
	}
	return median(a), median(b), nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
