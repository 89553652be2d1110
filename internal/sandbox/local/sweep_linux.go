package local

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/sandbox/guest"
)

// mark is what a command's environment says of its sandbox.
type mark struct {
	sandbox string
	init    guest.Process
}

// readMark reads the marker of a process, which only processes of the same user
// show. The marker's pid means nothing outside its own pid namespace, so that a
// process of another one (in a container) has none.
func readMark(pid int) (mark, bool) {
	own, err1 := os.Readlink("/proc/self/ns/pid")
	its, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err1 != nil || err2 != nil || own != its {
		return mark{}, false
	}
	for kv := range bytes.SplitSeq(environ(pid), []byte{0}) {
		value, ok := bytes.CutPrefix(kv, []byte(guest.Marker+"="))
		if !ok {
			continue
		}
		parts := strings.Split(string(value), ":")
		if len(parts) != 3 {
			return mark{}, false
		}
		initPID, err1 := strconv.Atoi(parts[1])
		start, err2 := strconv.ParseUint(parts[2], 10, 64)
		return mark{parts[0], guest.Process{PID: initPID, Start: start}}, err1 == nil && err2 == nil
	}
	return mark{}, false
}

// environ is the environment of a process, which a thread that has ended does
// not show: the first one may have.
func environ(pid int) []byte {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/environ", pid))
	for _, file := range threads {
		if env, err := os.ReadFile(file); err == nil && len(env) > 0 {
			return env
		}
	}
	return nil
}

// marked lists the processes whose mark matches. A zombie shows none.
func marked(match func(mark) bool) []guest.Process {
	var found []guest.Process
	for _, p := range guest.Processes() {
		if p.PID == os.Getpid() {
			continue
		}
		if m, ok := readMark(p.PID); ok && match(m) {
			found = append(found, p)
		}
	}
	return found
}

// killMarked ends the processes whose mark matches: stopped until nothing new
// turns up, then killed, until none is left.
func killMarked(ctx context.Context, match func(mark) bool) error {
	for {
		left := marked(match)
		if len(left) == 0 {
			return nil
		}
		for seen := 0; len(left) > seen; left = marked(match) {
			seen = len(left)
			for _, p := range left {
				_ = p.Signal(unix.SIGSTOP)
			}
		}
		for _, p := range left {
			_ = p.Signal(unix.SIGKILL)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d processes of the sandbox are still there: %w", len(left), context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// initGone reports whether the init of a marked process is dead: nothing else
// will end that process.
func initGone(m mark) bool {
	now, err := guest.ReadProcess(m.init.PID)
	return err != nil || now.Start != m.init.Start || now.State == 'Z'
}

// initStopped reports whether the init of a marked process is stopped: it
// serves nobody, and does not see the end of its stream until it is continued.
func initStopped(m mark) bool {
	now, err := guest.ReadProcess(m.init.PID)
	return err == nil && now.Start == m.init.Start && now.State == 'T'
}

// AddRoot names a directory of private homes that Sweep should look at.
func (r *Runtime) AddRoot(root, prefix string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.homes[homePlace{root, prefix}] = true
}

// Sweep ends the processes and removes the homes that sandboxes left whose
// init was killed. One that is stopped is continued, and then sees by itself
// whether its front end is still there.
func (r *Runtime) Sweep(ctx context.Context, dryRun bool) ([]string, error) {
	var lines []string
	for _, p := range marked(initGone) {
		lines = append(lines, fmt.Sprintf("process %d: its sandbox-init is gone", p.PID))
	}
	if !dryRun {
		if err := killMarked(ctx, initGone); err != nil {
			return lines, err
		}
	}
	for _, p := range marked(initStopped) {
		lines = append(lines, fmt.Sprintf("process %d: its sandbox-init is stopped and is continued", p.PID))
		if m, ok := readMark(p.PID); ok && !dryRun {
			_ = m.init.Signal(unix.SIGCONT)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := range r.homes {
		stale := slices.Concat(staleHomes(at.root, at.prefix), staleHomes(os.TempDir(), at.prefix), unowned(at.root))
		for _, path := range stale {
			lines = append(lines, "private home "+filepath.Base(path)+": nobody holds it")
			if dryRun {
				continue
			}
			if err := guest.RemoveHome(path); err != nil {
				return lines, err
			}
		}
	}
	return lines, nil
}

// List is every sandbox that a process of this user belongs to.
func (r *Runtime) List(context.Context) ([]sandbox.Listed, error) {
	seen := map[mark]bool{}
	var out []sandbox.Listed
	for _, p := range guest.Processes() {
		m, ok := readMark(p.PID)
		if !ok || p.State == 'Z' || seen[m] {
			continue
		}
		seen[m] = true
		state := "running"
		if initGone(m) {
			state = "abandoned"
		}
		out = append(out, sandbox.Listed{ID: strconv.Itoa(m.init.PID), Sandbox: m.sandbox, State: state,
			User: fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())})
	}
	return out, nil
}
