package call

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// snapshot is the state of a work tree before a call, untracked files included,
// ignored ones not.
//
// It is kept in a repository of its own, with an index of its own: nothing is
// written to the user's, and nothing that the agent may write to that (its
// configuration, hooks, filters) is ever run by us, outside of the sandbox. The
// user's objects are read, so that only what changed is stored.
type snapshot struct {
	top    string // of the work tree
	dir    string // temporary: ours
	except string // a directory that does not count, or empty
	format string // of object names
	tree   string // the state before
}

// takeSnapshot takes down the work tree that holds dir. except is left out.
func takeSnapshot(ctx context.Context, dir, except string) (s *snapshot, err error) {
	// Before the call the repository is the user's word.
	found, err := git(ctx, nil, "-C", dir, "-c", "safe.directory=*", "rev-parse", "--path-format=absolute",
		"--show-toplevel", "--show-object-format", "--git-path", "objects", "--git-path", "info/exclude")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(found, "\n")
	if len(lines) != 4 {
		return nil, fmt.Errorf("git told %d lines about %s in place of 4: it needs git 2.31 or later", len(lines), dir)
	}
	s = &snapshot{top: lines[0], format: lines[1]}
	if s.dir, err = os.MkdirTemp("", "mcp-agents-call-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if real, err := filepath.EvalSymlinks(except); err == nil {
		except = real
	}
	if rel, err := filepath.Rel(s.top, except); err == nil && filepath.IsLocal(rel) && rel != "." {
		s.except = filepath.ToSlash(rel)
	}
	if _, err = git(ctx, nil, "init", "-q", "--bare", "--object-format="+s.format, s.repository()); err != nil {
		return nil, err
	}
	if err = write(filepath.Join(s.repository(), "objects", "info", "alternates"), []byte(lines[2]+"\n")); err != nil {
		return nil, err
	}
	if rules, readErr := os.ReadFile(lines[3]); readErr == nil {
		if err = write(filepath.Join(s.repository(), "info", "exclude"), rules); err != nil {
			return nil, err
		}
	}
	s.tree, err = s.read(ctx, "before")
	return s, err
}

func (s *snapshot) repository() string { return filepath.Join(s.dir, "git") }

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// env makes git use our repository and no configuration but its own.
func (s *snapshot) env(index string) []string {
	return []string{"GIT_DIR=" + s.repository(), "GIT_WORK_TREE=" + s.top, "GIT_INDEX_FILE=" + filepath.Join(s.dir, index)}
}

// read stores the work tree as it is and returns its name. A fresh index holds
// no submodule that git would look into.
func (s *snapshot) read(ctx context.Context, index string) (string, error) {
	args := []string{"-C", s.top, "-c", "core.bare=false", "-c", "advice.addEmbeddedRepo=false", "add", "-A", "--", "."}
	if s.except != "" {
		args = append(args, ":(exclude,top,literal)"+s.except)
	}
	if _, err := git(ctx, s.env(index), args...); err != nil {
		return "", err
	}
	return git(ctx, s.env(index), "write-tree")
}

// diff writes what changed since to a file, as a patch for the top of the work
// tree that git apply takes.
func (s *snapshot) diff(ctx context.Context, path string) (err error) {
	after, err := s.read(ctx, "after")
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	cmd := gitCommand(ctx, s.env("after"), "diff-tree", "-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", s.tree, after)
	cmd.Stdout = f
	return cmd.Run()
}

func (s *snapshot) close() error {
	if s == nil {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// git runs git and returns its output without the last line break.
func git(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := gitCommand(ctx, env, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return "", fmt.Errorf("git: %w: %s", err, text)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

func gitCommand(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}
