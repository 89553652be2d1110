// Command house checks the project's own rules of layout and language, and
// prints the tree: its rooms, packages, lines, layers and import arrows.
//
//	go run ./internal/tools/house [-C DIR] [-rules FILE] [tree|places|words]...
//
// Without a name it runs all three checks:
//
//   - tree: the size and the direction of imports, against house.txt;
//   - places: every `file.go:Symbol` in a document exists;
//   - words: comments, documents and texts for users keep to plain English, by
//     the table in CONTRIBUTING.md.
//
// The exit status is 1 if a rule is broken, 2 if a check could not run.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

//go:embed house.txt
var houseRules string

// broken is a list of broken rules, one a line.
type broken []string

func (b broken) Error() string { return strings.Join(b, "\n") }

// check is one of the three checks. It prints what it counted.
type check struct {
	name string
	run  func(tree, rules, io.Writer) error
}

var checks = []check{{"tree", checkTree}, {"places", checkPlaces}, {"words", checkWords}}

func main() {
	dir := flag.String("C", ".", "the project's top `directory`")
	rulesFile := flag.String("rules", "", "`file` with the rules (default: the one that is built in)")
	flag.Parse()
	os.Exit(run(*dir, *rulesFile, flag.Args(), os.Stdout, os.Stderr))
}

func run(dir, rulesFile string, names []string, out, errs io.Writer) int {
	text := houseRules
	if rulesFile != "" {
		b, err := os.ReadFile(rulesFile)
		if err != nil {
			fmt.Fprintln(errs, "house:", err)
			return 2
		}
		text = string(b)
	}
	rules, err := parseRules(text)
	if err != nil {
		fmt.Fprintln(errs, "house:", err)
		return 2
	}
	files, err := tracked(dir)
	if err != nil {
		fmt.Fprintln(errs, "house:", err)
		return 2
	}
	status := 0
	for _, c := range checks {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		err := c.run(tree{dir, files}, rules, out)
		if list, ok := errors.AsType[broken](err); ok {
			fmt.Fprintf(errs, "house: %s:\n%s\n", c.name, list)
			status = max(status, 1)
		} else if err != nil {
			fmt.Fprintf(errs, "house: %s: %v\n", c.name, err)
			status = 2
		}
	}
	return status
}

// tree is the project's top directory and the files in it that git tracks or
// would track, relative and sorted.
type tree struct {
	dir   string
	files []string
}

func tracked(dir string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", dir, err)
	}
	var files []string
	for name := range bytes.SplitSeq(out, []byte{0}) {
		if len(name) > 0 {
			files = append(files, string(name))
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}
