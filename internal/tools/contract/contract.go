// Command contract runs the tests that hold what users of this program rely on
// and says how much of that is covered.
//
//	go run ./internal/tools/contract [-v] [go test arguments]
//
// The list is checklist.txt. A test says which items it covers by the numbers
// that begin its name, or that of a subtest: t.Run("149 150 death in a frame",
// ...). An item is covered if a test that names it ran and all those passed.
// The last line is "contract: N/M"; above it stand the items that are not
// covered, with the reason. The status is 1 if a test failed or an item without
// a reason is not covered.
//
// Items of some sections must be covered in a sandbox of each runtime as well,
// by tests with a part of their name that is that of a runtime. Above the last
// line stands for how many that holds, which tests were not run there, and which
// scenarios passed only when they were played again.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed checklist.txt
var checklist string

// packages are those whose tests name items.
var packages = []string{"./internal/config", "./internal/credentials", "./internal/provider/codex/...", "./internal/provider/claude", "./internal/agent/job", "./internal/e2e/codex",
	"./internal/e2e/tools", "./internal/provider/browser", "./internal/provider/browser/lease/helper", "./internal/provider/browser/lease/localtool"}

// item is one line of the checklist.
type item struct {
	number int
	text   string
	reason string // why no test covers it; empty: one must
	here   bool   // this version does it
	boxed  bool   // a test must cover it in a sandbox of each runtime
}

// parse reads the checklist.
func parse(text string) ([]item, error) {
	var items []item
	here, boxed := false, false
	for n, line := range strings.Split(text, "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "# "):
			continue
		case strings.HasPrefix(line, "## "):
			_, state, _ := strings.Cut(line, ": ")
			state, where, both := strings.Cut(state, ", ")
			if state != "here" && state != "later" || both && where != "on both runtimes" {
				return nil, fmt.Errorf("line %d: unknown state of a section", n+1)
			}
			here, boxed = state == "here", both
			continue
		}
		number, words, _ := strings.Cut(line, " ")
		words, reason, _ := strings.Cut(words, " -- ")
		first, last, ranged := strings.Cut(number, "-")
		from, err := strconv.Atoi(first)
		to := from
		if ranged && err == nil {
			to, err = strconv.Atoi(last)
		}
		if err != nil || words == "" || from != len(items)+1 || to < from {
			return nil, fmt.Errorf("line %d: %q is not item %d", n+1, line, len(items)+1)
		}
		for i := from; i <= to; i++ {
			items = append(items, item{i, words, reason, here, boxed})
		}
	}
	return items, nil
}

// event is a line of `go test -json`.
type event struct{ Action, Package, Test, Output string }

// named finds the numbers that begin a part of a test's name. Spaces are
// underscores there, and "1.7" is no number.
var named = regexp.MustCompile(`(?:^|/)((?:\d+_)*\d+)(?:_[^/]*)?(?:/|$)`)

// numbers returns the items that the name of a test names.
func numbers(name string) []int {
	var all []int
	for part := range strings.SplitSeq(name, "/") {
		m := named.FindStringSubmatch(part)
		if m == nil {
			continue
		}
		for n := range strings.SplitSeq(m[1], "_") {
			i, _ := strconv.Atoi(n)
			all = append(all, i)
		}
	}
	return all
}

// outcome is what the tests showed.
type outcome struct {
	passed, failed map[int]bool
	runtimes       map[string]*played
	failures       []string
}

// played is what was shown in sandboxes of one runtime.
type played struct {
	passed  map[int]bool
	ran     bool     // a test did, whatever items it names
	skipped []string // tests, with the reason
	whole   []string // tests that were skipped with all that they would run there
	reason  string   // of the last of those
	again   []string // scenarios that failed at first, with the reason
}

// absent reports that the runtime cannot be had: all that asked for it was
// skipped. One skipped test says nothing of a runtime on which others ran.
func (p *played) absent() bool { return !p.ran && len(p.whole) > 0 }

// runtimeOf returns the runtime that a test's name names, and the rest of the name.
func runtimeOf(name string) (runtime, rest string) {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if part == "local" || part == "docker" {
			return part, strings.Join(parts[i+1:], "/")
		}
	}
	return "", ""
}

func newOutcome() outcome {
	return outcome{passed: map[int]bool{}, failed: map[int]bool{},
		runtimes: map[string]*played{"local": {passed: map[int]bool{}}, "docker": {passed: map[int]bool{}}}}
}

// pass notes a test that passed, skip one that was not run.
func (o outcome) pass(test string) {
	runtime, _ := runtimeOf(test)
	p := o.runtimes[runtime]
	if p != nil {
		p.ran = true
	}
	for _, n := range numbers(test) {
		o.passed[n] = true
		if p != nil {
			p.passed[n] = true
		}
	}
}

// fail notes a test that failed.
func (o outcome) fail(test string) {
	for _, n := range numbers(test) {
		o.failed[n] = true
	}
	runtime, _ := runtimeOf(test)
	if p := o.runtimes[runtime]; p != nil {
		p.ran = true
	}
}

// again notes what a test says of a scenario that was played again.
func (o outcome) again(test, output string) {
	runtime, rest := runtimeOf(test)
	p := o.runtimes[runtime]
	if p == nil {
		return
	}
	for line := range strings.Lines(output) {
		if _, why, ok := strings.Cut(strings.TrimSpace(line), "played again: "); ok {
			p.again = append(p.again, fmt.Sprintf("%q: %s", lastOf(rest), why))
		}
	}
}

// lastOf is the last part of a test's name, with its spaces.
func lastOf(test string) string {
	return strings.ReplaceAll(test[strings.LastIndexByte(test, '/')+1:], "_", " ")
}

func (o outcome) skip(test, output string) {
	runtime, rest := runtimeOf(test)
	p := o.runtimes[runtime]
	if p == nil {
		return
	}
	reason := "no reason"
	for line := range strings.Lines(output) {
		if _, text, ok := strings.Cut(line, "_test.go:"); ok { // FILE_test.go:LINE: reason
			_, reason, _ = strings.Cut(strings.TrimSpace(text), ": ")
		}
	}
	if rest == "" {
		p.reason = reason
		p.whole = append(p.whole, fmt.Sprintf("%q: %s", test, reason))
		return
	}
	p.skipped = append(p.skipped, fmt.Sprintf("%q: %s", lastOf(rest), reason))
}

// read takes the output of `go test -json`. The output of what failed goes to w.
func read(r io.Reader, w io.Writer) (outcome, error) {
	o := newOutcome()
	output := map[string]string{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(w, lines.Text()) // such as why a package does not build
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			output[key] += e.Output
		case "pass":
			o.pass(e.Test)
			o.again(e.Test, output[key])
			delete(output, key)
		case "skip":
			o.skip(e.Test, output[key])
		case "fail":
			o.fail(e.Test)
			o.failures = append(o.failures, key)
			fmt.Fprint(w, output[key])
		}
	}
	return o, lines.Err()
}

// report writes what is not covered and the counts, and reports whether all is
// well.
func report(w io.Writer, items []item, o outcome) bool {
	ok := len(o.failures) == 0
	covered, all := 0, 0
	for _, i := range items {
		if !i.here {
			continue
		}
		all++
		reason := i.reason
		switch {
		case o.failed[i.number]:
			reason = "a test of it failed"
		case o.passed[i.number]:
			covered++
			continue
		case reason == "":
			ok, reason = false, "NO TEST"
		}
		fmt.Fprintf(w, "contract: %d %s: not covered: %s\n", i.number, i.text, reason)
	}
	if !reportRuntimes(w, items, o) {
		ok = false
	}
	fmt.Fprintf(w, "contract: %d/%d\n", covered, all)
	return ok
}

// reportRuntimes writes what was shown in sandboxes, and reports whether all
// that must be was, on each runtime that could be had.
func reportRuntimes(w io.Writer, items []item, o outcome) bool {
	ok := true
	var boxed []item
	for _, i := range items {
		if i.here && i.boxed {
			boxed = append(boxed, i)
		}
	}
	if len(boxed) == 0 {
		return true
	}
	both, again := len(boxed), 0
	missing := map[int]bool{}
	for _, runtime := range slices.Sorted(maps.Keys(o.runtimes)) {
		p := o.runtimes[runtime]
		for _, test := range p.skipped {
			fmt.Fprintf(w, "contract: not in a sandbox (%s): %s\n", runtime, test)
		}
		again += len(p.again)
		for _, scenario := range p.again {
			fmt.Fprintf(w, "contract: played again (%s): %s\n", runtime, scenario)
		}
		if p.absent() {
			fmt.Fprintf(w, "contract: nothing was run on %s: %s\n", runtime, p.reason)
		} else {
			for _, test := range p.whole {
				fmt.Fprintf(w, "contract: skipped on %s, where others ran: %s\n", runtime, test)
			}
		}
		for _, i := range boxed {
			if p.passed[i.number] && !o.failed[i.number] {
				continue
			}
			if !missing[i.number] {
				missing[i.number] = true
				both--
			}
			if !p.absent() {
				ok = false
				fmt.Fprintf(w, "contract: %d %s: NOT IN A SANDBOX (%s)\n", i.number, i.text, runtime)
			}
		}
	}
	if again > 0 {
		fmt.Fprintf(w, "contract: played again because the machine was busy: %d times\n", again)
	}
	fmt.Fprintf(w, "contract: on both runtimes: %d of %d\n", both, len(boxed))
	return ok
}

func run(args []string) error {
	items, err := parse(checklist)
	if err != nil {
		return fmt.Errorf("checklist: %w", err)
	}
	cmd := exec.Command("go", slices.Concat([]string{"test", "-json"}, args, packages)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	o, err := read(out, os.Stderr)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("read go test: %w", err)
	}
	waitErr := cmd.Wait()
	if waitErr != nil && len(o.failures) == 0 {
		o.failures = append(o.failures, waitErr.Error())
	}
	if !report(os.Stdout, items, o) {
		return fmt.Errorf("%d tests failed, or an item lacks its test", len(o.failures))
	}
	return nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
}
