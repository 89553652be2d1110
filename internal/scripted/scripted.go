// Package scripted runs the scripted model where a sandbox can reach it, so that
// a demo, a pipeline or a test works without credentials and without a network.
//
// A local sandbox reaches this process on a loopback address. A container joins
// the network of another one, which has no network but that loopback, and in
// which the model runs.
package scripted

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
	"time"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/scripted/model"
)

// closeTime bounds the end of the model's container.
const closeTime = 30 * time.Second

// Options are the settings of a model.
type Options struct {
	// Runtime is what the sandboxes run on.
	Runtime sandbox.Runtime
	// Image is one of ours with sandbox-init, for a runtime with images.
	Image string
	// Scenario is a built-in scenario's name, or a file (with a path or .json).
	Scenario string
	// Binary is this program; where it is not built for Linux, the build for
	// Linux lies beside it.
	Binary string
}

// Model is a running model.
type Model struct {
	addr    string
	network string
	close   func(context.Context) error
}

// Start starts the model. It accepts connections when Start returns, and runs
// until Close, whatever becomes of the context.
func Start(ctx context.Context, opts Options) (*Model, error) {
	scenario, err := model.LoadScenario(opts.Scenario)
	if err != nil {
		return nil, err
	}
	if opts.Runtime.Name() == "local" {
		srv, err := model.Start(context.WithoutCancel(ctx), model.Options{Scenario: scenario})
		if err != nil {
			return nil, err
		}
		return &Model{addr: srv.Addr(), close: func(context.Context) error { return srv.Close() }}, nil
	}
	return startContainer(ctx, opts)
}

// BaseURL is what the provider's CLI takes as the address of its model.
func (m *Model) BaseURL(provider string) string {
	if provider == "claude" {
		return "http://" + m.addr
	}
	return "http://" + m.addr + "/v1"
}

// Network is the network that a sandbox must join to reach the model; empty
// means any.
func (m *Model) Network() string { return m.network }

// Flags are the server's flags that lead a provider to the model.
func (m *Model) Flags(provider string) []string {
	flags := []string{"--model_base_url", m.BaseURL(provider)}
	if m.network != "" {
		flags = append(flags, "--network", m.network)
	}
	return flags
}

// Close ends the model. The sandboxes on its network must have ended before.
func (m *Model) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return m.close(ctx)
}

// containerBinary is where the front end's image has this program.
const containerBinary = "/usr/local/bin/mcp-agents"

// modelSpec is the sandbox of the model, and where this program is in it. A
// front end in a container shares no file of its image with others: there the
// model runs in a container of that image.
func modelSpec(ctx context.Context, opts Options) (sandbox.Spec, string, error) {
	spec := sandbox.Spec{Provider: "model", Instance: fmt.Sprint(os.Getpid()), Image: opts.Image, Network: "none", User: "1000:1000"}
	if rt, ok := opts.Runtime.(interface {
		OwnImage(context.Context) (string, error)
	}); ok {
		own, err := rt.OwnImage(ctx)
		if err != nil {
			return spec, "", fmt.Errorf("start the scripted model: %w", err)
		}
		if own != "" && opts.Binary == containerBinary {
			spec.Image = own
			return spec, containerBinary, nil
		}
	}
	binary, err := linuxBinary(opts.Binary)
	spec.Mounts = []sandbox.Mount{{Path: binary, ReadOnly: true}}
	return spec, binary, err
}

// startContainer runs this program as the model in a sandbox of its own. A
// scenario file comes in on its stdin: the container sees no file of the host
// but the program.
func startContainer(ctx context.Context, opts Options) (_ *Model, err error) {
	spec, binary, err := modelSpec(ctx, opts)
	if err != nil {
		return nil, err
	}
	name, script, err := scenarioInput(opts.Scenario)
	if err != nil {
		return nil, err
	}
	box, err := sandbox.Open(ctx, opts.Runtime, spec, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("start the scripted model: %w", err)
	}
	m := &Model{network: "container:" + box.ID(), close: box.Close}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start the scripted model: %w", err), m.Close(ctx))
		}
	}()
	proc, err := box.Spawn(ctx, sandbox.Command{Argv: []string{binary, "model", "--scenario", name}, Env: opts.Runtime.Environ(spec), Dir: "/", Stdin: true})
	if err != nil {
		return nil, err
	}
	if _, err = proc.Stdin().Write(script); err != nil {
		return nil, err
	}
	if err = proc.Stdin().Close(); err != nil {
		return nil, err
	}
	if m.addr, err = listening(ctx, proc); err != nil {
		return nil, err
	}
	return m, nil
}

// scenarioInput is how the model inside gets the scenario: by its name, or for
// a file by its content.
func scenarioInput(scenario string) (name string, script []byte, err error) {
	if !strings.ContainsAny(scenario, `/\`) && !strings.HasSuffix(scenario, ".json") {
		return scenario, nil, nil
	}
	script, err = os.ReadFile(scenario)
	return "/dev/stdin", script, err
}

// listening waits for the one line that the model prints, which ends in its
// address.
func listening(ctx context.Context, proc *sandbox.Process) (string, error) {
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // ends with the line, or with the sandbox
		line, err := bufio.NewReader(proc.Stdout()).ReadString('\n')
		got <- answer{line, err}
	}()
	select {
	case a := <-got:
		fields := strings.Fields(a.line)
		if a.err != nil || len(fields) == 0 {
			text, _ := io.ReadAll(io.LimitReader(proc.Stderr(), 1<<10))
			return "", fmt.Errorf("it said nothing: %w: %s", a.err, text)
		}
		return fields[len(fields)-1], nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// linuxBinary is this program for a Linux container.
func linuxBinary(self string) (string, error) {
	if runtime.GOOS == "linux" {
		return self, nil
	}
	path := filepath.Join(filepath.Dir(self), "mcp-agents-linux-"+runtime.GOARCH)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the Linux build of mcp-agents is missing (run `make build`): %w", err)
	}
	return path, nil
}
