package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/tools/bench/measure"
)

// fakeClaudeImage is the Claude image with the fake Claude Code, which answers
// at once, so that what we add is what is seen.
const fakeClaudeImage = "mcp-agents-test/fakeclaude:latest"

// claude is the part of the table about Claude Code.
func (b *bench) claude(ctx context.Context) error {
	if err := b.buildFakeClaude(ctx); err != nil {
		return err
	}
	return errors.Join(b.claudeStart(ctx), b.claudeCall(ctx), b.claudeReview(ctx), b.claudeMemory(ctx))
}

func (b *bench) buildFakeClaude(ctx context.Context) error {
	dir := filepath.Join(b.dir, "fakeclaude")
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "claude"), "mcpagents/internal/testkit/fakeclaude")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the fake Claude Code: %w: %s", err, out)
	}
	dockerfile := "ARG BASE\nFROM $BASE\nCOPY claude /usr/local/sbin/claude\nCOPY claude /usr/local/sbin/agy\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o644); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "docker", "build", "-q", "--build-arg", "BASE="+docker.DefaultImage("claude"), "-t", fakeClaudeImage, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the fake image: %w: %s", err, out)
	}
	return nil
}

// claudeFrontEnd is the command line of a front end for Claude Code.
func (b *bench) claudeFrontEnd(warm int) *exec.Cmd {
	cmd := exec.Command(b.agents, "--provider", "claude", "--image", fakeClaudeImage, "--workspace", b.workspace, "--network", "none",
		"--warm", strconv.Itoa(warm), "--log_level", "error")
	cmd.Dir = b.workspace
	cmd.Env = append(os.Environ(), "CLAUDE_CONFIG_DIR="+b.login, "ANTHROPIC_API_KEY=made-up")
	return cmd
}

// claudeStart: what a client waits for, and what an idle server costs it.
func (b *bench) claudeStart(ctx context.Context) error {
	var all []measure.Startup
	for range 12 {
		s, err := measure.Start(ctx, b.claudeFrontEnd(1))
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	m := measure.Median(all[1:])
	b.row("claude: start to tools/list: time, CPU, memory", fmt.Sprintf("%s, %.3f s, %.1f MiB", short(m.ToolList), m.CPU.Seconds(), float64(m.Memory)/(1<<20)),
		"", "", "below 0.41 s and 84 MiB, a Node program's, measured once elsewhere")
	return nil
}

// mcp is a connection over which tools are called.
type mcp struct {
	*server
	ctx context.Context
	id  int
}

func (b *bench) connect(ctx context.Context, cmd *exec.Cmd) (*mcp, error) {
	s, err := startServer(cmd)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(s.in, handshake)
	if err = errors.Join(err, s.until(ctx, []byte(`"id":2`))); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return &mcp{s, ctx, 2}, nil
}

// status is what the job tools say of a job.
type status struct {
	JobID  string `json:"jobId"`
	State  string `json:"state"`
	Cursor int    `json:"cursor"`
}

// call calls a tool and waits for its answer, which must be no error.
func (m *mcp) call(name string, args map[string]any) (status, error) {
	m.id++
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.id, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	if err != nil {
		return status{}, err
	}
	if _, err := m.in.Write(append(b, '\n')); err != nil {
		return status{}, err
	}
	var reply struct {
		ID     int `json:"id"`
		Result struct {
			Structured status `json:"structuredContent"`
			IsError    bool   `json:"isError"`
		} `json:"result"`
	}
	for reply.ID != m.id { // the answer of initialize may come behind that of tools/list
		line, err := m.out.ReadBytes('\n')
		if err != nil {
			return status{}, fmt.Errorf("%w: %s", err, m.err.String())
		}
		if err := json.Unmarshal(line, &reply); err != nil {
			return status{}, err
		}
		if reply.Result.IsError {
			return status{}, fmt.Errorf("%s failed: %s", name, line)
		}
	}
	return reply.Result.Structured, m.ctx.Err()
}

// claudeCall: a call with a sandbox of its own, which is gone when the answer
// comes, beside `docker run -i --rm` with the same options and program.
func (b *bench) claudeCall(ctx context.Context) error {
	m, err := b.connect(ctx, b.claudeFrontEnd(0))
	if err != nil {
		return err
	}
	ours, bare, err := alternate(11,
		func() (time.Duration, error) {
			begin := time.Now()
			_, err := m.call("claude_code", map[string]any{"prompt": "hello"})
			return time.Since(begin), err
		},
		func() (time.Duration, error) {
			options := b.sameOptions()
			options = append(options[:len(options)-3], "claude", fakeClaudeImage, "-p", "--output-format", "json")
			cmd := exec.CommandContext(ctx, "docker", options...)
			cmd.Stdin = strings.NewReader("hello")
			begin := time.Now()
			out, err := cmd.CombinedOutput()
			if err == nil && !strings.Contains(string(out), `"result":"hello"`) {
				err = fmt.Errorf("docker run answers %q", out)
			}
			return time.Since(begin), err
		})
	if err = errors.Join(err, m.close()); err != nil {
		return err
	}
	b.ratio("claude_code, cold, to the answer with its sandbox gone", ours, bare, "1.10")
	return nil
}

// claudeReview: from claude-start to the first word of the CLI, with a spare,
// beside the same without.
func (b *bench) claudeReview(ctx context.Context) error {
	spare, err := b.connect(ctx, b.claudeFrontEnd(1))
	if err != nil {
		return err
	}
	cold, err := b.connect(ctx, b.claudeFrontEnd(0))
	if err != nil {
		return errors.Join(err, spare.close())
	}
	with, without, err := alternate(9,
		func() (time.Duration, error) {
			for range 40 { // until there is one: nothing tells
				if err := pause(ctx); err != nil {
					return 0, err
				}
			}
			return b.firstWord(spare)
		},
		func() (time.Duration, error) { return b.firstWord(cold) })
	if err = errors.Join(err, spare.close(), cold.close()); err != nil {
		return err
	}
	b.ratio("claude-start to the first word, with a spare, beside a cold sandbox", with, without, "")
	return nil
}

func (b *bench) firstWord(m *mcp) (time.Duration, error) {
	begin := time.Now()
	s, err := m.call("claude-start", map[string]any{"prompt": "hello", "cwd": b.workspace})
	if err != nil {
		return 0, err
	}
	s, err = m.call("claude-status", map[string]any{"jobId": s.JobID, "cursor": 0, "wait_ms": 60000})
	took := time.Since(begin)
	for err == nil && s.State != "completed" {
		if s.State == "failed" {
			return 0, errors.New("the review failed")
		}
		s, err = m.call("claude-status", map[string]any{"jobId": s.JobID, "cursor": s.Cursor, "wait_ms": 60000})
	}
	return took, err
}

// claudeMemory: a front end with as many reviews as it runs at once, beside
// itself before.
func (b *bench) claudeMemory(ctx context.Context) error {
	cmd := b.claudeFrontEnd(0)
	m, err := b.connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = m.close() }()
	resident := func() (int64, error) { return field("/proc/"+strconv.Itoa(cmd.Process.Pid)+"/status", "VmRSS:") }
	idle, err := resident()
	if err != nil {
		return err
	}
	for range 8 {
		s, err := m.call("claude-start", map[string]any{"prompt": `[{"do":"event","type":"assistant"},{"do":"until-interrupt"}]`, "cwd": b.workspace})
		for err == nil && s.State != "running" {
			s, err = m.call("claude-status", map[string]any{"jobId": s.JobID, "cursor": s.Cursor, "wait_ms": 60000})
		}
		if err != nil {
			return err
		}
	}
	busy, err := resident()
	if err != nil {
		return err
	}
	mib := func(kib int64) string { return fmt.Sprintf("%.1f MiB", float64(kib)/1024) }
	b.row("claude: resident memory with 8 running reviews, beside none", mib(busy), mib(idle), "", "30 MiB")
	return nil
}
