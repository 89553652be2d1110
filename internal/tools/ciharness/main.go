//go:build unix

// Command ciharness runs the pipelines of docs/examples on this machine, against
// the scripted model, and checks what a CI system would see of them: exit
// statuses, what a signal or a deadline leaves, and the artifacts. The steps are
// read from the example files, so that those cannot drift.
//
//	go run ./internal/tools/ciharness [-bin DIR]
//
// It needs bash, git, make, an engine and the image of codex. The last line is
// "ci-harness: ok", or the status is 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	bin := flag.String("bin", os.Getenv("MCP_AGENTS_TEST_BIN"), "directory of mcp-agents")
	docs := flag.String("docs", filepath.Join("docs", "examples"), "directory of the pipelines")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *bin, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "ci-harness:", err)
		stop()
		os.Exit(1)
	}
	fmt.Println("ci-harness: ok")
}

func run(ctx context.Context, bin, docs string) error {
	h, err := newHarness(bin)
	if err != nil {
		return err
	}
	defer h.close()
	pipelines := map[string]pipeline{}
	for file, parse := range map[string]func([]byte) (pipeline, error){"github-actions.yml": parseGitHub, "gitlab-ci.yml": parseGitLab} {
		b, err := os.ReadFile(filepath.Join(docs, file))
		if err != nil {
			return fmt.Errorf("read a pipeline: %w", err)
		}
		if pipelines[file], err = parse(b); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	var failed error
	for _, c := range cases {
		begin := time.Now()
		err := h.runCase(ctx, pipelines[c.file], c)
		verdict := "ok"
		if err != nil {
			verdict = "FAILED"
			failed = errors.Join(failed, fmt.Errorf("%s: %s: %w", c.file, c.name, err))
		}
		fmt.Printf("%-20s %-44s %-6s %5.1f s\n", c.file, c.name, verdict, time.Since(begin).Seconds())
	}
	return failed
}
