//go:build unix

package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"
)

// pipeline is what a CI system would run on a machine, and keep.
type pipeline struct {
	prelude   string // what its shells do first
	before    []step // jobs and steps that may fail, or that prepare
	review    step   // the one that calls mcp-agents
	after     []step // what runs whatever became of the review
	artifacts []string
	cancel    cancel
}

// step is a script with its environment. Expressions of the CI system stand in
// both as they are written.
type step struct {
	name, script string
	env          map[string]string
	mayFail      bool
}

// cancel is how a CI system ends a step, in this order.
type cancel struct {
	group   bool // to all processes of the step, not to its shell alone
	signals []signalling
}

// signalling is a signal, and the time that it has until the next.
type signalling struct {
	sig  syscall.Signal
	wait time.Duration
}

// The runner of GitHub signals the shell's process only, and at last kills what
// is left; GitLab's shell executor signals the group.
var (
	githubCancel = cancel{signals: []signalling{{syscall.SIGINT, 7500 * time.Millisecond}, {syscall.SIGTERM, 2500 * time.Millisecond}}}
	gitlabCancel = cancel{group: true, signals: []signalling{{syscall.SIGTERM, 10 * time.Second}}}
)

const program = "mcp-agents call "

// parseGitHub reads a workflow of one job.
func parseGitHub(b []byte) (pipeline, error) {
	var file struct {
		Jobs map[string]struct {
			Steps []struct {
				Name, Uses, Run, If string
				Env                 map[string]string
				With                map[string]any
			}
		}
	}
	if err := yaml.Unmarshal(b, &file); err != nil {
		return pipeline{}, err
	}
	if len(file.Jobs) != 1 {
		return pipeline{}, fmt.Errorf("%d jobs: this harness plays one", len(file.Jobs))
	}
	// What GitHub's runner does where no shell is named.
	p := pipeline{prelude: "set -e", cancel: githubCancel}
	for _, job := range file.Jobs {
		for _, s := range job.Steps {
			action, _, _ := strings.Cut(s.Uses, "@")
			one := step{name: s.Name, script: s.Run, env: s.Env}
			switch {
			case action == "actions/checkout":
			case action == "actions/upload-artifact":
				if s.If != "always()" {
					return pipeline{}, errors.New("the artifacts are kept only if all went well")
				}
				path, _ := s.With["path"].(string)
				p.artifacts = append(p.artifacts, path+"/diff.patch", path+"/result.json", path+"/call.log")
			case action != "":
				return pipeline{}, fmt.Errorf("this harness does not play %s", s.Uses)
			case strings.Contains(s.Run, program):
				if !strings.HasPrefix(s.Run, "exec "+program) {
					return pipeline{}, errors.New("the call is a child of the step's shell, which a cancel does not reach: begin the step with exec")
				}
				p.review = one
			case s.If == "always()":
				p.after = append(p.after, one)
			case s.If != "" || p.review.script != "":
				return pipeline{}, fmt.Errorf("this harness does not know when %q runs", s.Name)
			default:
				p.before = append(p.before, one)
			}
		}
	}
	return p, p.complete()
}

// parseGitLab reads a pipeline whose job "fix" runs when "test" has failed.
func parseGitLab(b []byte) (pipeline, error) {
	type job struct {
		Script    []string
		When      string
		Artifacts struct {
			When  string
			Paths []string
		}
	}
	var file struct{ Test, Fix job }
	if err := yaml.Unmarshal(b, &file); err != nil {
		return pipeline{}, err
	}
	if file.Fix.When != "on_failure" || file.Fix.Artifacts.When != "always" {
		return pipeline{}, errors.New("fix must run on_failure and keep its artifacts always")
	}
	p := pipeline{prelude: "set -eo pipefail", cancel: gitlabCancel, artifacts: file.Fix.Artifacts.Paths}
	p.before = append(p.before, step{name: "test", script: strings.Join(file.Test.Script, "\n"), mayFail: true})
	for _, line := range file.Fix.Script {
		if strings.Contains(line, program) {
			p.review = step{name: "fix", script: line}
		} else {
			p.before = append(p.before, step{name: "fix", script: line})
		}
	}
	return p, p.complete()
}

func (p pipeline) complete() error {
	if p.review.script == "" || len(p.artifacts) == 0 || len(p.before) == 0 {
		return errors.New("there is no step that prepares, no step that calls mcp-agents, or no artifact")
	}
	return nil
}

var (
	expression = regexp.MustCompile(`\$\{\{ *([^ }]+) *\}\}`)
	deadline   = regexp.MustCompile(`--deadline \d+`)
)

// expand replaces the expressions of a CI system. An unknown one is an error.
func expand(text string, values map[string]string) (string, error) {
	var unknown error
	out := expression.ReplaceAllStringFunc(text, func(match string) string {
		name := expression.FindStringSubmatch(match)[1]
		value, ok := values[name]
		if !ok {
			unknown = fmt.Errorf("this harness has no value for %s", match)
		}
		return value
	})
	return out, unknown
}

// within gives the script another deadline, in seconds.
func within(script, seconds string) (string, error) {
	if found := deadline.FindAllString(script, -1); len(found) != 1 {
		return "", fmt.Errorf("the script has %d deadlines", len(found))
	}
	return deadline.ReplaceAllString(script, "--deadline "+seconds), nil
}
