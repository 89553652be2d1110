package main

import (
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wordsHeading begins the section of CONTRIBUTING.md whose table lists, in its
// first column, the phrases to avoid.
const wordsHeading = "## Words"

// passage is a piece of text that people read.
type passage struct {
	line int
	text string
}

// checkWords returns the phrases to avoid that comments, documents and the
// product's string literals hold.
func checkWords(t tree, r rules, out io.Writer) error {
	phrases, err := avoided(filepath.Join(t.dir, "CONTRIBUTING.md"))
	if err != nil {
		return err
	}
	var quoted []string
	for _, p := range phrases {
		quoted = append(quoted, regexp.QuoteMeta(p))
	}
	find := regexp.MustCompile(`(?i)\b(` + strings.Join(quoted, "|") + `)\b`)
	var faults broken
	for _, name := range t.files {
		if strings.Contains(name, "testdata/") {
			continue
		}
		texts, err := passages(t.dir, name, r)
		if err != nil {
			return err
		}
		for _, p := range texts {
			for _, phrase := range find.FindAllString(p.text, -1) {
				if !slices.Contains(r.allow[strings.ToLower(phrase)], name) {
					faults = append(faults, fmt.Sprintf("%s:%d: %q", name, p.line, phrase))
				}
			}
		}
	}
	fmt.Fprintf(out, "words: %d phrases to avoid, %d found\n", len(phrases), len(faults))
	if len(faults) > 0 {
		return append(faults, "the table in CONTRIBUTING.md has plain forms")
	}
	return nil
}

// avoided reads the phrases of the table below wordsHeading.
func avoided(file string) (phrases []string, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	_, section, ok := strings.Cut(string(b), "\n"+wordsHeading+"\n")
	if !ok {
		return nil, fmt.Errorf("%s has no section %q", file, wordsHeading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || strings.HasPrefix(strings.TrimSpace(cells[1]), "-") {
			continue
		}
		for phrase := range strings.SplitSeq(cells[1], ",") {
			if phrase = strings.Trim(strings.TrimSpace(phrase), `"`); phrase != "avoid" {
				phrases = append(phrases, phrase)
			}
		}
	}
	if len(phrases) == 0 {
		return nil, fmt.Errorf("the section %q of %s has no table of phrases", wordsHeading, file)
	}
	return phrases, nil
}

// passages returns what a file tells people. A comment or a paragraph that runs
// over several lines is one passage, so that a phrase across a line end counts.
func passages(dir, name string, r rules) ([]passage, error) {
	base := filepath.Base(name)
	switch ext := filepath.Ext(name); {
	case ext == ".go":
		src, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		product := !strings.HasSuffix(name, "_test.go") && !r.isSupport(filepath.ToSlash(filepath.Dir(name)))
		return goPassages(name, src, product)
	case ext == ".md":
		return lines(dir, name, func(string) bool { return true })
	case ext == ".sh", ext == ".yaml", ext == ".yml", base == "Makefile", base == "Dockerfile", ext == ".Dockerfile", name == ".ci/run":
		return lines(dir, name, func(line string) bool { return strings.Contains(line, "#") })
	}
	return nil, nil
}

// goPassages returns the comments, and with literals the string literals.
func goPassages(name string, src []byte, literals bool) (texts []passage, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, group := range file.Comments {
		texts = append(texts, passage{fset.Position(group.Pos()).Line, strings.Join(strings.Fields(group.Text()), " ")})
	}
	if !literals {
		return texts, nil
	}
	var s scanner.Scanner
	f := fset.AddFile(name, -1, len(src))
	s.Init(f, src, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return texts, nil
		}
		if tok == token.STRING {
			texts = append(texts, passage{fset.Position(pos).Line, strings.Join(strings.Fields(lit), " ")})
		}
	}
}

// lines returns the paragraphs of the lines that keep accepts. The table of the
// phrases itself is left out.
func lines(dir, name string, keep func(string) bool) (texts []passage, err error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	var section bool
	var last *passage
	for n, line := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(line, "## ") {
			section = line == wordsHeading
		}
		if section || strings.TrimSpace(line) == "" || !keep(line) {
			last = nil
			continue
		}
		line = strings.Join(strings.Fields(strings.TrimLeft(line, "# \t")), " ")
		if last != nil {
			last.text += " " + line
			continue
		}
		texts = append(texts, passage{n + 1, line})
		last = &texts[len(texts)-1]
	}
	return texts, nil
}
