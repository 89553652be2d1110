// Package setup writes the entry that starts this program into the
// configuration of an MCP client, and takes it out again.
//
// A user's file is never encoded anew: the entry is spliced into its bytes, so
// that every comment, order, line end and indentation stays, and removing the
// entry gives back the bytes that were there before. An edit that could not be
// undone so, or a file that cannot be parsed, is refused and nothing is written.
package setup

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Request is what to do.
type Request struct {
	Client   string // a name of [Clients]
	Provider string // codex, claude, gemini or browser; empty: the client's usual one
	Docker   bool   // `docker run -i …` in place of the binary
	User     bool   // the user's file where the client has a project's as well
	Remove   bool
	DryRun   bool

	Dir    string // absolute: the project
	Home   string // absolute: the user's home
	Binary string // absolute: this program
	Getenv func(string) string
}

// Outcome is what was done, or with DryRun would be.
type Outcome struct {
	Path  string // the file, symbolic links followed
	Entry string // the entry's name
	// Action is "added", "removed", "unchanged", or "not there".
	Action string
	// Notes are single lines about what was left as it is.
	Notes []string
	// Diff is the change as a unified diff; empty if there is none.
	Diff []byte
}

// UsageError is a request that makes no sense, whatever the files hold.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

// existing is an entry in a file.
type existing struct {
	name  string
	value any // decoded
	line  int
}

// format is a syntax of configuration files: JSON with or without comments, or
// TOML. Its methods never change what they are given.
type format interface {
	// entries lists the servers in a file's order, a repeated name repeatedly.
	entries(src []byte) ([]existing, error)
	// decoded is an entry as entries would give it.
	decoded(e entry) (any, error)
	// add splices a new entry in. An empty src is a file that is not there, or
	// is empty; newFile tells which.
	add(src []byte, newFile bool, name string, e entry) ([]byte, error)
	// remove takes the only entry of that name out. A nil result is a file that
	// held nothing that was not ours.
	remove(src []byte, name string) ([]byte, error)
}

// Run does what the request says. Errors name the file and leave it untouched.
func Run(req Request) (Outcome, error) {
	client, svc, where, err := resolve(&req)
	if err != nil {
		return Outcome{}, err
	}
	f, err := open(where)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Path: f.path, Entry: svc.entry, Action: "unchanged"}
	list, err := client.format.entries(f.data)
	if err != nil {
		return out, fmt.Errorf("%s cannot be parsed and is left as it is: %w", f.path, err)
	}
	var named []existing
	for _, e := range list {
		switch {
		case e.name == svc.entry:
			named = append(named, e)
		case startsUs(e.value, svc.provider):
			out.Notes = append(out.Notes, fmt.Sprintf("%s:%d: the entry %q starts mcp-agents --provider %s as well; it is left as it is",
				f.path, e.line, e.name, svc.provider))
		}
	}
	if len(named) > 1 {
		return out, fmt.Errorf("%s holds %d entries named %q (lines %d and %d) and is left as it is: remove all but one by hand",
			f.path, len(named), svc.entry, named[0].line, named[1].line)
	}
	if req.Remove {
		return take(client, svc, f, named, req.DryRun, out)
	}
	out, err = give(client, newEntry(client, svc, req), f, named, req.DryRun, out)
	if err == nil { // of another entry it may not be true
		out.Notes = append(out.Notes, unseen(client, svc, req)...)
	}
	return out, err
}

// unseen says of the keys that are set here that the entry's server does not get
// them, and what passes them on. The entry itself does not follow from what is set
// where it is written: a file is shared, and a second time must change nothing.
func unseen(c Client, s service, req Request) []string {
	var names, ways []string
	for _, name := range s.keys {
		if req.Getenv(name) != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if c.pass != nil {
		ways = append(ways, c.pass(names))
	}
	if req.Docker {
		ways = append(ways, `"-e", `+strings.Join(quoteAll(names), `, "-e", `)+" in its args before the image")
	}
	if len(ways) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the server does not get %s, set here: a login file logs %s in, or the entry has %s",
		strings.Join(names, " and "), s.entry, strings.Join(ways, " and "))}
}

// resolve completes the request and finds the file.
func resolve(req *Request) (c Client, s service, where target, err error) {
	if c, err = clientNamed(req.Client); err != nil {
		return c, s, where, err
	}
	if req.Provider == "" {
		req.Provider = c.Provider
	}
	if s, err = serviceOf(req.Provider); err != nil {
		return c, s, where, err
	}
	if req.Docker && runtime.GOOS == "windows" {
		return c, s, where, &UsageError{"--docker needs paths that are the same inside a container: use it in WSL, or leave it out"}
	}
	p, dir := c.project, req.Dir
	switch {
	case p.path == "":
		p, dir, req.User = c.user, req.Home, true
	case req.User && c.user.path == "":
		return c, s, where, &UsageError{fmt.Sprintf("--user is for claude-code: %s has its entry in %s of the project", c.Title, p.path)}
	case req.User:
		p, dir = c.user, req.Home
	}
	where = target{path: p.at(dir, req.Getenv), mode: p.mode, dirMode: p.dirMode, ownDir: !req.User && strings.Contains(p.path, "/")}
	if !filepath.IsAbs(where.path) {
		return c, s, where, fmt.Errorf("%s is not absolute: set %s to an absolute path", where.path, p.variable)
	}
	return c, s, where, nil
}

// give adds the entry.
func give(c Client, e entry, f *file, named []existing, dryRun bool, out Outcome) (Outcome, error) {
	want, err := c.format.decoded(e)
	if err != nil {
		return out, err
	}
	if len(named) == 1 {
		if reflect.DeepEqual(named[0].value, want) {
			return out, nil
		}
		return out, fmt.Errorf("%s:%d: an entry %q with other content is there and is left as it is: "+
			"edit it by hand, or take it out with --remove first", f.path, named[0].line, named[0].name)
	}
	edited, err := c.format.add(f.data, !f.exists, out.Entry, e)
	if err != nil {
		return out, fmt.Errorf("%s is left as it is: %w", f.path, err)
	}
	if err := checkAdded(c.format, f, edited, out.Entry, want); err != nil {
		return out, fmt.Errorf("%s is left as it is: %w", f.path, err)
	}
	out.Action = "added"
	return commit(f, edited, dryRun, out)
}

// checkAdded makes sure of the promise before anything is written: the entry is
// there as meant, all others are as they were, and it can be taken out again.
func checkAdded(format format, f *file, edited []byte, name string, want any) error {
	before, err := format.entries(f.data)
	if err != nil {
		return err
	}
	after, err := format.entries(edited)
	if err != nil {
		return fmt.Errorf("the entry does not fit in: %w", err)
	}
	if len(after) != len(before)+1 || after[len(before)].name != name || !reflect.DeepEqual(after[len(before)].value, want) {
		return errors.New("the entry does not fit in beside what is there: add it by hand")
	}
	for i := range before {
		if before[i].name != after[i].name || !reflect.DeepEqual(before[i].value, after[i].value) {
			return errors.New("the entry would change another one: add it by hand")
		}
	}
	back, err := format.remove(edited, name)
	if err != nil {
		return fmt.Errorf("the entry could not be taken out again: %w", err)
	}
	if !bytes.Equal(back, f.data) || (back == nil) == f.exists {
		return errors.New("the entry could not be taken out again without a trace: add it by hand")
	}
	return nil
}

// take removes the entry.
func take(c Client, s service, f *file, named []existing, dryRun bool, out Outcome) (Outcome, error) {
	if len(named) == 0 {
		out.Action = "not there"
		return out, nil
	}
	if !startsUs(named[0].value, s.provider) {
		return out, fmt.Errorf("%s:%d: the entry %q does not start mcp-agents --provider %s and is left as it is",
			f.path, named[0].line, named[0].name, s.provider)
	}
	edited, err := c.format.remove(f.data, out.Entry)
	if err != nil {
		return out, fmt.Errorf("%s is left as it is: %w", f.path, err)
	}
	if after, err := c.format.entries(edited); err != nil {
		return out, fmt.Errorf("%s is left as it is: the entry does not come out cleanly: %w", f.path, err)
	} else if before, _ := c.format.entries(f.data); len(after) != len(before)-1 {
		return out, fmt.Errorf("%s is left as it is: the entry does not come out cleanly: remove it by hand", f.path)
	}
	out.Action = "removed"
	return commit(f, edited, dryRun, out)
}

// commit writes the edited bytes, or only shows them. nil removes the file.
func commit(f *file, edited []byte, dryRun bool, out Outcome) (Outcome, error) {
	before, after := f.path, f.path
	if !f.exists {
		before = "/dev/null"
	}
	if edited == nil {
		after = "/dev/null"
	}
	out.Diff = diff.Diff(before, f.data, after, edited)
	if dryRun {
		return out, nil
	}
	if edited == nil {
		return out, f.remove()
	}
	return out, f.replace(edited)
}
