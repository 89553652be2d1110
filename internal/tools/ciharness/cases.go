//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Scenarios of the model.
const (
	answers = `{"steps": [{"exec": {"cmd": "git log --oneline | head -n 1"}}], "final": "No defects found."}`
	fixes   = `{"steps": [{"exec": {"cmd": "echo yes >fixed"}}], "final": "Fixed."}`
	stalls  = `{"steps": [{"exec": {"cmd": "sleep 600"}}], "final": "never"}`
	begins  = `{"steps": [{"exec": {"cmd": "echo begun >half"}}, {"exec": {"cmd": "sleep 600"}}], "final": "never"}`
	refuses = `{"steps": [{"status": {"code": 400}}]}`
)

// ciCase is a pipeline, what happens to it, and what must come of it.
type ciCase struct {
	file, name string
	scenario   string
	deadline   string // in place of the example's
	cancelled  bool   // in the middle of the turn
	noTask     bool   // the step that writes the task did not
	status     int
	stdout     string            // where the answer goes: contains
	patch      string            // diff.patch contains
	holds      map[string]string // files contain
}

const (
	github = "github-actions.yml"
	gitlab = "gitlab-ci.yml"
)

var cases = []ciCase{
	{file: github, name: "a review", scenario: answers, holds: map[string]string{"review.md": "No defects found.", "summary.md": "No defects found.",
		"review/result.json": "No defects found.", "review/call.log": "Codex: started"}},
	{file: github, name: "the model refuses: status 1", scenario: refuses, status: 1, holds: map[string]string{"review/result.json": `"isError": true`}},
	{file: github, name: "no task: status 2", scenario: answers, noTask: true, status: 2},
	{file: github, name: "the deadline: status 124", scenario: stalls, deadline: "4", status: 124,
		holds: map[string]string{"review/call.log": "no answer within 4s"}},
	{file: github, name: "a cancelled job, SIGINT to the shell", scenario: stalls, cancelled: true, status: 130,
		holds: map[string]string{"review/call.log": "interrupted"}},
	{file: gitlab, name: "a fix", scenario: fixes, patch: "+++ b/fixed\n@@ -0,0 +1 @@\n+yes", stdout: "Fixed.",
		holds: map[string]string{"review/result.json": "Fixed.", "test.log": "fixed is missing"}},
	{file: gitlab, name: "the model refuses: status 1", scenario: refuses, status: 1},
	{file: gitlab, name: "no task: status 2", scenario: fixes, noTask: true, status: 2},
	{file: gitlab, name: "the deadline: status 124, and half a fix", scenario: begins, deadline: "5", status: 124, patch: "+++ b/half"},
	{file: gitlab, name: "a cancelled job, SIGTERM to all", scenario: stalls, cancelled: true, status: 143,
		holds: map[string]string{"review/call.log": "interrupted"}},
}

func (h *harness) runCase(ctx context.Context, p pipeline, c ciCase) (err error) {
	at, err := h.prepare()
	if err != nil {
		return err
	}
	model, err := at.startModel(ctx, c.scenario)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close(ctx)) }()
	for _, s := range p.before {
		r, err := at.run(ctx, p.prelude, s, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if s.mayFail != (r.status != 0) {
			return fmt.Errorf("%s ended with %d: %s%s", s.name, r.status, r.stdout, r.stderr)
		}
	}
	review := p.review
	if c.noTask {
		for _, dir := range []string{at.repo, at.temp} {
			_ = os.Remove(filepath.Join(dir, "task.md"))
		}
	}
	if c.deadline != "" {
		if review.script, err = within(review.script, c.deadline); err != nil {
			return err
		}
	}
	var end *cancel
	if c.cancelled {
		end = &p.cancel
	}
	r, err := at.run(ctx, p.prelude, review, end)
	if err != nil {
		return err
	}
	for _, s := range p.after {
		r, err := at.run(ctx, p.prelude, s, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if r.status != 0 {
			return fmt.Errorf("%s ended with %d: %s", s.name, r.status, r.stderr)
		}
	}
	if err := at.check(p, c, r); err != nil {
		return fmt.Errorf("%w; it said:\n%s", err, r.stderr)
	}
	return nil
}

// check compares what the runner sees with what must be.
func (at *place) check(p pipeline, c ciCase, r result) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if r.status != c.status {
		fault("status %d, want %d", r.status, c.status)
	}
	if r.killed {
		fault("the signals of a cancel left processes of the step, which were killed")
	}
	if !strings.Contains(r.stdout, c.stdout) || (c.status != 0 && r.stdout != "") {
		fault("stdout is %q", r.stdout)
	}
	if left, err := at.containers(); err != nil {
		fault("look for what is left: %w", err)
	} else if len(left) > 0 {
		fault("containers are left: %v", left)
	}
	if c.status != 2 { // a mistake in the command line is no run
		for _, path := range p.artifacts {
			path, err := expand(path, at.values)
			if err == nil {
				_, err = os.Stat(at.resolve(path))
			}
			if err != nil {
				fault("an artifact is missing: %w", err)
			}
			if strings.HasSuffix(path, "diff.patch") {
				at.contains(path, c.patch, fault)
			}
		}
	}
	for path, text := range c.holds {
		at.contains(path, text, fault)
	}
	return errors.Join(faults...)
}

// contains reads a file of the checkout or of the runner's own directory.
func (at *place) contains(path, text string, fault func(string, ...any)) {
	b, err := os.ReadFile(at.resolve(path))
	if err != nil {
		fault("%w", err)
	} else if !strings.Contains(string(b), text) {
		fault("%s holds %q, not %q", path, b, text)
	}
}

func (at *place) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	if found := filepath.Join(at.temp, path); exists(found) {
		return found
	}
	return filepath.Join(at.repo, path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
