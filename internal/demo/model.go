package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"mcpagents/internal/model"
	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/docker"
)

// scriptedModel is the running model and how a sandbox reaches it.
type scriptedModel struct {
	url     string
	network string // for --network
	close   func(context.Context) error
}

// startModel serves the scripted model on the loopback address that Codex will
// have: that of a container without any network, which Codex's joins.
func (d *demo) startModel(ctx context.Context) (*scriptedModel, error) {
	defer d.stage("starting the scripted model")()
	if d.runtime == "local" {
		scenario, err := model.LoadScenario("demo")
		if err != nil {
			return nil, err
		}
		srv, err := model.Start(context.WithoutCancel(ctx), model.Options{Scenario: scenario})
		if err != nil {
			return nil, err
		}
		return &scriptedModel{url: srv.BaseURL(), network: "bridge", close: func(context.Context) error { return srv.Close() }}, nil
	}
	binary, err := d.linuxBinary()
	if err != nil {
		return nil, err
	}
	spec := sandbox.Spec{Provider: "model", Instance: fmt.Sprint(os.Getpid()), Image: docker.DefaultImage("codex"), Network: "none",
		User: "1000:1000", Mounts: []sandbox.Mount{{Path: binary, ReadOnly: true}}}
	box, err := sandbox.Open(ctx, d.rt, spec, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	proc, err := box.Spawn(ctx, sandbox.Command{Argv: []string{binary, "model", "--scenario", "demo"}, Env: d.rt.Environ(spec), Dir: "/"})
	if err != nil {
		return nil, errors.Join(err, box.Close(ctx))
	}
	// The one line that it prints says where it listens.
	line, err := bufio.NewReader(proc.Stdout()).ReadString('\n')
	if err != nil {
		text, _ := io.ReadAll(io.LimitReader(proc.Stderr(), 1<<10))
		return nil, errors.Join(fmt.Errorf("it did not start: %w: %s", err, text), box.Close(ctx))
	}
	addr := strings.TrimSpace(line[strings.LastIndexByte(strings.TrimSpace(line), ' ')+1:])
	return &scriptedModel{url: "http://" + addr + "/v1", network: "container:" + box.ID(), close: box.Close}, nil
}

// linuxBinary is this program for a Linux container.
func (d *demo) linuxBinary() (string, error) {
	if runtime.GOOS == "linux" {
		return d.self, nil
	}
	path := filepath.Join(filepath.Dir(d.self), "mcp-agents-linux-"+runtime.GOARCH)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the Linux build of mcp-agents is missing (run `make build`): %w", err)
	}
	return path, nil
}
