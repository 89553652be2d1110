// Package selfcontainer finds out which container this process runs in, and
// where that container's paths are on the engine's machine.
//
// A front end in a container asks the engine outside for sibling containers,
// and the engine knows only its own machine's paths.
package selfcontainer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	fullID  = regexp.MustCompile(`[0-9a-f]{64}`)
	shortID = regexp.MustCompile(`^[0-9a-f]{12,64}$`)
)

// ownFiles are what an engine mounts into a container from the container's own
// directory on the engine's machine, which bears the container's id.
var ownFiles = []string{"/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/run/.containerenv"}

// Candidate is an id that the container of this process may have.
type Candidate struct {
	ID string
	// Certain says that the id is ours if the engine knows it at all. Otherwise
	// it comes from what a container shares with those that join its network,
	// and may be the other container's.
	Certain bool
}

// Candidates returns the ids that the container of this process may have, the
// likeliest first, and none outside a container. Each must be looked up at the
// engine: one that it does not know belongs to a pod, or to a container around
// ours. The file system is the root, with /proc mounted.
func Candidates(root fs.FS, hostname string) []Candidate {
	var list []Candidate
	add := func(id string, certain bool) {
		if !slices.ContainsFunc(list, func(c Candidate) bool { return strings.HasPrefix(c.ID, id) }) {
			list = append(list, Candidate{id, certain})
		}
	}
	for _, id := range fromCgroups(read(root, "proc/self/cgroup")) {
		add(id, true)
	}
	for _, id := range fromMounts(read(root, "proc/self/mountinfo")) {
		add(id, false)
	}
	if shortID.MatchString(hostname) && Inside(root) {
		add(hostname, false) // an engine names the machine of a container after its id
	}
	return list
}

// UpperDir is the directory on the engine's machine that holds what this
// container wrote to its root, as far as an overlay shows it; no two containers
// have the same. It may lack the beginning of the path.
func UpperDir(root fs.FS) string {
	for scan := bufio.NewScanner(bytes.NewReader(read(root, "proc/self/mountinfo"))); scan.Scan(); {
		fields := strings.Fields(scan.Text())
		if len(fields) < 5 || fields[4] != "/" {
			continue
		}
		for option := range strings.SplitSeq(fields[len(fields)-1], ",") {
			if dir, ok := strings.CutPrefix(option, "upperdir="); ok {
				return dir
			}
		}
	}
	return ""
}

// Inside reports whether an engine left its mark at the root: this process runs
// in a container, and its loopback is that container's.
func Inside(root fs.FS) bool {
	for _, name := range []string{".dockerenv", "run/.containerenv"} {
		if _, err := fs.Stat(root, name); err == nil {
			return true
		}
	}
	return false
}

// maxProc bounds what is read of a file in /proc.
const maxProc = 4 << 20

func read(root fs.FS, name string) []byte {
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	var b bytes.Buffer
	_, _ = b.ReadFrom(io.LimitReader(f, maxProc))
	return b.Bytes()
}

// fromMounts reads ids from proc_pid_mountinfo(5): field 4 is the root of the
// mount in its file system, field 5 where it is mounted.
func fromMounts(mountinfo []byte) []string {
	var ids []string
	for scan := bufio.NewScanner(bytes.NewReader(mountinfo)); scan.Scan(); {
		fields := strings.Fields(scan.Text())
		if len(fields) < 5 || !slices.Contains(ownFiles, fields[4]) {
			continue
		}
		if found := fullID.FindAllString(fields[3], -1); len(found) > 0 {
			ids = append(ids, found[len(found)-1])
		}
	}
	return ids
}

// fromCgroups reads ids from proc_pid_cgroup(5), such as
// 12:pids:/docker/<id>, 0::/system.slice/docker-<id>.scope or
// 1:name=systemd:/kubepods/burstable/pod<uid>/<id>: of nested ones the innermost.
func fromCgroups(cgroup []byte) []string {
	var ids []string
	for scan := bufio.NewScanner(bytes.NewReader(cgroup)); scan.Scan(); {
		if found := fullID.FindAllString(scan.Text(), -1); len(found) > 0 {
			ids = append(ids, found[len(found)-1])
		}
	}
	return ids
}

// Mount is a mount of our container.
type Mount struct {
	Target string // in the container
	// Source is where its content is on the engine's machine; empty when it is
	// nowhere there, as a tmpfs is.
	Source   string
	ReadOnly bool
}

// Container is the container that this process runs in.
type Container struct {
	ID     string
	Mounts []Mount
}

// UnsharedError says that a path of ours is on no mount of our container, or
// on one that no other container can have.
type UnsharedError struct {
	Path      string
	Container string // its id
}

func (e *UnsharedError) Error() string {
	return fmt.Sprintf("%s is on no directory that the container of mcp-agents (%.12s) shares with the engine's machine, so that no sandbox "+
		"can have it: add -v %s to its docker run", e.Path, e.Container, quote(e.Path+":"+e.Path))
}

// Locate returns where a path of ours, absolute and without symbolic links, is
// on the engine's machine, and whether we may only read it there. The error is
// a *[UnsharedError].
func (c Container) Locate(name string) (source string, readOnly bool, err error) {
	name = path.Clean(name)
	best := -1
	for i, m := range c.Mounts {
		if within(m.Target, name) && (best < 0 || len(m.Target) > len(c.Mounts[best].Target)) {
			best = i
		}
	}
	if best < 0 || c.Mounts[best].Source == "" {
		return "", false, &UnsharedError{Path: name, Container: c.ID}
	}
	m := c.Mounts[best]
	rest := strings.TrimPrefix(strings.TrimPrefix(name, path.Clean(m.Target)), "/")
	if rest == "" {
		return m.Source, m.ReadOnly, nil
	}
	return strings.TrimSuffix(m.Source, "/") + "/" + rest, m.ReadOnly, nil
}

// within reports whether name is dir or lies below it.
func within(dir, name string) bool {
	dir = path.Clean(dir)
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

var plainPath = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote makes a word fit for a POSIX command line.
func quote(word string) string {
	if plainPath.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
