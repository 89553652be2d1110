package guest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Process names one process beyond the reuse of its pid.
type Process struct {
	PID    int
	Parent int
	Start  uint64 // clock ticks since boot
	State  byte   // R, S, D, T, Z …
}

// ReadProcess reads /proc/<pid>/stat.
func ReadProcess(pid int) (Process, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, err
	}
	// The command name is in parentheses and may hold anything, these too.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return Process{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	p := Process{PID: pid, State: fields[0][0]}
	if p.Parent, err = strconv.Atoi(string(fields[1])); err != nil {
		return Process{}, err
	}
	p.Start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return p, err
}

// Processes lists what runs on the machine (in this pid namespace).
func Processes() []Process {
	var all []Process
	for _, pid := range pids() {
		if p, err := ReadProcess(pid); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// pids lists the directory of processes.
func pids() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// descendants lists the processes below root. Zombies are among them: one whose
// first thread has ended looks like that and lives on in its others.
func descendants(root int) []Process {
	children := map[int][]Process{}
	for _, p := range Processes() {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var found []Process
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			queue = append(queue, p.PID)
			found = append(found, p)
		}
	}
	return found
}

// Signal sends sig through a pidfd, which cannot hit another process that got
// the same pid since.
func (p Process) Signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ENOSYS) {
		return unix.Kill(p.PID, sig)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	now, err := ReadProcess(p.PID)
	if err != nil || now.Start != p.Start {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

func (p Process) signal(sig unix.Signal) { _ = p.Signal(sig) }

// killTree stops everything below root until nothing new turns up, then kills
// it, and returns how many it saw. A stopped process cannot fork, so a bomb of
// double-forking children ends. Quick looks at new pids alone catch those that
// replace themselves again and again; a look at all processes then says whether
// that was everything.
func killTree(root int) int {
	h := hunt{root: root, stopped: map[Process]bool{}, known: map[int]bool{root: true}}
	for fresh := true; fresh; {
		for h.quickLook() {
		}
		fresh = false
		for _, p := range descendants(root) {
			fresh = h.stop(p) || fresh
		}
	}
	for p := range h.stopped {
		p.signal(unix.SIGKILL)
	}
	return len(h.stopped)
}

// hunt is one killTree under way.
type hunt struct {
	root    int
	stopped map[Process]bool
	known   map[int]bool // pids that need no second look, and whether they are root or below
}

// stop stops p unless that was done before, and reports whether it did.
func (h *hunt) stop(p Process) bool {
	h.known[p.PID] = true
	p.State = 0
	p.Parent = 0 // changes when a parent dies
	if h.stopped[p] {
		return false
	}
	h.stopped[p] = true
	p.signal(unix.SIGSTOP)
	return true
}

// quickLook stops what is new below root, each as soon as it is seen, and
// reports whether there was any. Few pids are new, so it takes far less time
// than a process needs to replace itself. It misses a pid that was used anew.
func (h *hunt) quickLook() bool {
	fresh := false
	for _, pid := range pids() {
		if _, ok := h.known[pid]; ok {
			continue
		}
		p, err := ReadProcess(pid)
		if err != nil {
			continue
		}
		switch below, err := h.below(p); {
		case err != nil: // it or a parent ended: the next look knows more
		case below:
			fresh = h.stop(p) || fresh
		default:
			h.known[pid] = false
		}
	}
	return fresh
}

// below follows the parents of p.
func (h *hunt) below(p Process) (bool, error) {
	for {
		if below, ok := h.known[p.Parent]; ok {
			return below, nil
		}
		if p.Parent <= 1 {
			return false, nil
		}
		var err error
		if p, err = ReadProcess(p.Parent); err != nil {
			return false, err
		}
	}
}
