package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"mcpagents/internal/sandbox"
)

// showSandbox prints who runs what while the turn is under way. A local sandbox
// has no owner of its own: its processes are this user's.
func (d *demo) showSandbox(ctx context.Context, frontEnd int) error {
	list, err := d.rt.List(ctx)
	if err != nil {
		return err
	}
	shown := 0
	for _, l := range list {
		if !d.ours(l) {
			continue
		}
		shown++
		d.say("sandbox %.12s is %s: image %s, commands run as %s, started by pid %d", l.ID, l.State, l.Image, l.User, frontEnd)
	}
	if shown == 0 {
		return fmt.Errorf("no sandbox is running although a call was answered")
	}
	return nil
}

// ours tells the demo's sandboxes from others of this machine: by the front end
// in a container's label, by the home in a local init's command line.
func (d *demo) ours(l sandbox.Listed) bool {
	if d.runtime == "local" {
		cmdline, err := os.ReadFile(filepath.Join("/proc", l.ID, "cmdline"))
		return err == nil && strings.Contains(string(cmdline), d.dir)
	}
	return l.Instance == strconv.Itoa(d.frontEnd) || l.Instance == strconv.Itoa(os.Getpid())
}

// checkWorkspace prints what Codex changed and checks whose it is.
func (d *demo) checkWorkspace(ctx context.Context) error {
	diff, err := d.git(ctx, "diff")
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\n%s\n", strings.TrimSpace(diff))
	if !strings.Contains(diff, "+Hello from a disposable container.") {
		return fmt.Errorf("greeting.txt was not changed")
	}
	owner, err := ownerOf(filepath.Join(d.workspace(), "greeting.txt"))
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\ngreeting.txt belongs to uid %d, as the workspace does\n", owner)
	if owner != d.owner {
		return fmt.Errorf("greeting.txt belongs to uid %d, the workspace to %d", owner, d.owner)
	}
	return nil
}

// leftSandboxes counts the demo's sandboxes that are still there.
func (d *demo) leftSandboxes(ctx context.Context) (int, error) {
	list, err := d.rt.List(ctx)
	if err != nil {
		return 0, err
	}
	left := 0
	for _, l := range list {
		if d.ours(l) {
			left++
			d.say("left: sandbox %s (%s)", l.ID, l.State)
		}
	}
	return left, nil
}

// checkNothingLeft looks for containers, processes and copies of the login.
func (d *demo) checkNothingLeft(ctx context.Context) error {
	left, err := d.leftSandboxes(ctx)
	if err != nil {
		return err
	}
	copies, err := loginCopies(d.workspace())
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "left behind: %d sandboxes, %d copies of the login\n", left, len(copies))
	if left+len(copies) > 0 {
		return fmt.Errorf("something was left behind")
	}
	return nil
}

// loginCopies finds files that hold the made-up key.
func loginCopies(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "made-up") {
			found = append(found, path)
		}
		return err
	})
	return found, err
}
