// Command contract runs the tests that hold what users of this program rely on
// and says how much of that is covered.
//
//	go run ./internal/contract [-v] [go test arguments]
//
// The list is checklist.txt. A test says which items it covers by the numbers
// that begin its name, or that of a subtest: t.Run("149 150 death in a frame",
// ...). An item is covered if a test that names it ran and all those passed.
// The last line is "contract: N/M"; above it stand the items that are not
// covered, with the reason. The status is 1 if a test failed or an item without
// a reason is not covered.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
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
var packages = []string{"./internal/cli/options", "./internal/login", "./internal/provider/codex/...", "./internal/job", "./internal/codexe2e"}

// item is one line of the checklist.
type item struct {
	number int
	text   string
	reason string // why no test covers it; empty: one must
	here   bool   // this version does it
}

// parse reads the checklist.
func parse(text string) ([]item, error) {
	var items []item
	here := false
	for n, line := range strings.Split(text, "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "# "):
			continue
		case strings.HasPrefix(line, "## "):
			_, state, _ := strings.Cut(line, ": ")
			if state != "here" && state != "later" {
				return nil, fmt.Errorf("line %d: state %q is neither here nor later", n+1, state)
			}
			here = state == "here"
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
			items = append(items, item{i, words, reason, here})
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
	failures       []string
}

// read takes the output of `go test -json`. The output of what failed goes to w.
func read(r io.Reader, w io.Writer) (outcome, error) {
	o := outcome{passed: map[int]bool{}, failed: map[int]bool{}}
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
			for _, n := range numbers(e.Test) {
				o.passed[n] = true
			}
			delete(output, key)
		case "fail":
			for _, n := range numbers(e.Test) {
				o.failed[n] = true
			}
			o.failures = append(o.failures, key)
			fmt.Fprint(w, output[key])
		}
	}
	return o, lines.Err()
}

// report writes what is not covered and the count, and reports whether all is
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
	fmt.Fprintf(w, "contract: %d/%d\n", covered, all)
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
