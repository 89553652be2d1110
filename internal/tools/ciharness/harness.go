//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/scripted"
)

const (
	// stepTime bounds a step.
	stepTime = 2 * time.Minute
	// user owns the checkout when the harness is root: the agent is then no root.
	user = 1000
)

// harness is the machine that plays the runner.
type harness struct {
	bin, image, dir string
	rt              *docker.Runtime
}

func newHarness(bin string) (*harness, error) {
	if bin == "" {
		bin = "bin"
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(bin, "mcp-agents")); err != nil {
		return nil, fmt.Errorf("the program is missing (make build): %w", err)
	}
	h := &harness{bin: bin, image: os.Getenv("MCP_AGENTS_TEST_IMAGE_CODEX")}
	if h.image == "" {
		h.image = docker.DefaultImage("codex")
	}
	if h.rt, err = docker.New(""); err != nil {
		return nil, err
	}
	if h.dir, err = os.MkdirTemp("", "mcp-agents-ci-harness-"); err == nil {
		err = os.Chmod(h.dir, 0o755)
	}
	return h, err
}

func (h *harness) close() {
	_ = h.rt.Close()
	_ = os.RemoveAll(h.dir)
}

// place is one checkout and the runner's directories beside it.
type place struct {
	h               *harness
	dir, repo, temp string
	env             []string
	values          map[string]string // of expressions
}

// prepare makes a checkout with one change after its base, whose tests fail.
func (h *harness) prepare() (*place, error) {
	dir, err := os.MkdirTemp(h.dir, "run-")
	if err != nil {
		return nil, err
	}
	p := &place{h: h, dir: dir, repo: filepath.Join(dir, "checkout"), temp: filepath.Join(dir, "temp")}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(p.repo, 0o755), os.Mkdir(p.temp, 0o755)); err != nil {
		return nil, err
	}
	script := `git init -q; git config user.name ci; git config user.email ci@localhost
printf 'test:\n\t@test -f fixed || { echo "fixed is missing"; exit 1; }\n' >Makefile
git add .; git commit -qm base; git rev-parse HEAD
echo change >changed.txt; git add .; git commit -qm change; [ "$(id -u)" != 0 ] || chown -R ` + fmt.Sprintf("%d:%d .", user, user)
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = p.repo
	base, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("make a checkout: %w", err)
	}
	p.values = map[string]string{"github.event.pull_request.base.sha": strings.TrimSpace(string(base)),
		"secrets.OPENAI_API_KEY": "made-up", "runner.temp": p.temp}
	// Of this machine's variables none that could stand in for the pipeline's own.
	p.env = []string{"PATH=" + h.bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "RUNNER_TEMP=" + p.temp, "OPENAI_API_KEY=made-up",
		"GITHUB_STEP_SUMMARY=" + filepath.Join(p.temp, "summary.md"), "MCP_AGENTS_IMAGE=" + h.image}
	for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"} {
		if v, ok := os.LookupEnv(name); ok {
			p.env = append(p.env, name+"="+v)
		}
	}
	return p, nil
}

// startModel lets the pipeline's calls reach a model with a scenario.
func (p *place) startModel(ctx context.Context, scenario string) (*scripted.Model, error) {
	file := filepath.Join(p.dir, "scenario.json")
	if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
		return nil, err
	}
	m, err := scripted.Start(ctx, scripted.Options{Runtime: p.h.rt, Image: p.h.image, Scenario: file, Binary: filepath.Join(p.h.bin, "mcp-agents")})
	if err == nil {
		p.env = append(p.env, "MCP_AGENTS_MODEL_BASE_URL="+m.BaseURL("codex"), "MCP_AGENTS_NETWORK="+m.Network())
	}
	return m, err
}

// result is what the runner sees of a step.
type result struct {
	status         int
	stdout, stderr string
	killed         bool // a cancel's signals did not end it, or not all of it
}

// watched is an output that tells when a text has come.
type watched struct {
	mu    sync.Mutex
	b     bytes.Buffer
	text  string
	found chan struct{}
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(b)
	if w.text != "" && strings.Contains(w.b.String(), w.text) {
		w.text = ""
		close(w.found)
	}
	return len(b), nil
}

// run runs a step as a runner does: a file for bash (which of "bash -c" would
// make the last command its own process), in a process group of its own. With an
// end the step is cancelled as soon as the turn has begun.
func (p *place) run(ctx context.Context, prelude string, s step, end *cancel) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	script, err := expand(s.script, p.values)
	if err != nil {
		return result{}, err
	}
	file := filepath.Join(p.dir, "step.sh")
	if err := os.WriteFile(file, []byte(prelude+"\n"+script+"\n"), 0o644); err != nil {
		return result{}, err
	}
	cmd := exec.CommandContext(ctx, "bash", file)
	cmd.Dir, cmd.Env = p.repo, p.env
	for name, value := range s.env {
		if value, err = expand(value, p.values); err != nil {
			return result{}, err
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var stdout bytes.Buffer
	stderr := &watched{text: "Codex: started", found: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	ended := make(chan struct{})
	var r result
	go func() { defer close(ended); _ = cmd.Wait() }()
	if end != nil {
		select {
		case <-stderr.found:
			err = p.seen() // or the check for what is left shows nothing
			r.killed = !end.end(cmd.Process.Pid, ended)
		case <-ended:
			err = errors.New("it ended before it could be cancelled")
		}
		if err != nil {
			cancel()
		}
	}
	<-ended
	if err != nil {
		return r, err
	}
	r.status, r.stdout, r.stderr = cmd.ProcessState.ExitCode(), stdout.String(), stderr.b.String()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.status = 128 + int(status.Signal()) // bash, after its command; what the runner reports
	}
	return r, nil
}

// end cancels a step whose shell has this pid. ended tells that nobody holds its
// output any more: the shell and what it started. It reports whether the signals
// did that: what is left is killed.
func (c cancel) end(pid int, ended <-chan struct{}) bool {
	to := pid
	if c.group {
		to = -pid
	}
	for _, s := range c.signals {
		_ = syscall.Kill(to, s.sig) // one that has ended is what ended tells
		select {
		case <-ended:
			return true
		case <-time.After(s.wait):
		}
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return false
}

// containers are those that see the checkout.
func (p *place) containers() ([]string, error) {
	out, err := exec.Command("docker", "ps", "-a", "-q", "--filter", "volume="+p.repo).Output()
	return strings.Fields(string(out)), err
}

func (p *place) seen() error {
	list, err := p.containers()
	if err == nil && len(list) == 0 {
		err = errors.New("the sandbox cannot be seen while it runs")
	}
	return err
}
