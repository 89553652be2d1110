package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// minLines is the size below which a package of product needs a reason.
const minLines = 100

// pkg is a Go package of the project. Files of every platform count.
type pkg struct {
	path      string // relative to the project's top
	files     int    // without tests
	lines     int    // of those
	testFiles int
	testLines int
	imports   map[string]bool // of the project, without those of tests
}

// packages reads the packages of the project below cmd, internal and images.
func packages(t tree) (map[string]*pkg, error) {
	module, err := modulePath(filepath.Join(t.dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	all := map[string]*pkg{}
	for _, name := range t.files {
		if path.Ext(name) != ".go" || strings.Contains(name, "testdata/") || strings.HasPrefix(name, ".") {
			continue
		}
		src, err := os.ReadFile(filepath.Join(t.dir, name))
		if err != nil {
			return nil, err
		}
		dir := path.Dir(name)
		p := all[dir]
		if p == nil {
			p = &pkg{path: dir, imports: map[string]bool{}}
			all[dir] = p
		}
		lines := bytes.Count(src, []byte{'\n'})
		if strings.HasSuffix(name, "_test.go") {
			p.testFiles++
			p.testLines += lines
			continue
		}
		p.files++
		p.lines += lines
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		for _, imp := range file.Imports {
			to, _ := strconv.Unquote(imp.Path.Value)
			if rel, ok := strings.CutPrefix(to, module+"/"); ok {
				p.imports[rel] = true
			}
		}
	}
	return all, nil
}

func modulePath(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(name), nil
		}
	}
	return "", fmt.Errorf("%s names no module", file)
}

// roomOf is the folder of the first level that a package lies in, such as
// internal/mcp, or cmd.
func roomOf(p string) string {
	parts := strings.SplitN(p, "/", 3)
	if parts[0] == "internal" && len(parts) > 1 {
		return "internal/" + parts[1]
	}
	return parts[0]
}

// checkTree prints the tree and returns the rules that it breaks.
func checkTree(t tree, r rules, out io.Writer) error {
	all, err := packages(t)
	if err != nil {
		return err
	}
	product := map[string]*pkg{}
	for name, p := range all {
		if !r.isSupport(name) {
			product[name] = p
		}
	}
	printPackages(out, all, r)
	var faults broken
	faults = append(faults, upward(product, all, r)...)
	rooms := roomArrows(product)
	circles := circlesOf(rooms)
	for _, c := range circles {
		faults = append(faults, "rooms import each other: "+strings.Join(c, ", "))
	}
	faults = append(faults, small(product, r)...)
	inside := map[string]bool{}
	for name := range all {
		if room := roomOf(name); strings.HasPrefix(room, "internal/") {
			inside[room] = true
		}
	}
	for _, count := range []struct {
		name string
		n    int
	}{{"rooms", len(inside)}, {"packages", len(product)}} {
		if most, ok := r.limits[count.name]; ok && count.n > most {
			faults = append(faults, fmt.Sprintf("%d %s, at most %d", count.n, count.name, most))
		}
	}
	printTotals(out, all, product, r, len(inside), rooms, circles, len(upward(product, all, r)))
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// upward returns the imports that go to a higher layer, to another room of the
// same one, or out of the product.
func upward(product, all map[string]*pkg, r rules) (faults broken) {
	for _, name := range slices.Sorted(maps.Keys(product)) {
		from := r.layerOf(name)
		if from < 0 && len(r.layers) > 0 {
			faults = append(faults, name+" is in no layer of house.txt")
			continue
		}
		for _, to := range slices.Sorted(maps.Keys(product[name].imports)) {
			layer := r.layerOf(to)
			switch {
			case all[to] == nil:
			case product[to] == nil:
				faults = append(faults, name+" is product and imports "+to)
			case layer < from:
				faults = append(faults, fmt.Sprintf("%s imports %s, which lies above it", name, to))
			}
		}
	}
	return faults
}

func small(product map[string]*pkg, r rules) (faults broken) {
	for _, name := range slices.Sorted(maps.Keys(product)) {
		if p := product[name]; p.lines < minLines && p.files > 0 && r.small[name] == "" {
			faults = append(faults, fmt.Sprintf("%s has %d lines and house.txt gives no reason for a package below %d", name, p.lines, minLines))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.small)) {
		if p := product[name]; p == nil || p.lines >= minLines {
			faults = append(faults, "house.txt gives a reason for "+name+", which needs none")
		}
	}
	return faults
}

// roomArrows are the imports between rooms of the product.
func roomArrows(product map[string]*pkg) map[string]map[string]bool {
	arrows := map[string]map[string]bool{}
	for name, p := range product {
		from := roomOf(name)
		if arrows[from] == nil {
			arrows[from] = map[string]bool{}
		}
		for to := range p.imports {
			if room := roomOf(to); room != from && product[to] != nil {
				arrows[from][room] = true
			}
		}
	}
	return arrows
}

// circlesOf returns the groups of rooms that import each other, directly or not.
func circlesOf(arrows map[string]map[string]bool) (groups [][]string) {
	reach := func(from string) map[string]bool {
		seen, queue := map[string]bool{}, slices.Collect(maps.Keys(arrows[from]))
		for len(queue) > 0 {
			next := queue[0]
			queue = queue[1:]
			if !seen[next] {
				seen[next] = true
				queue = slices.AppendSeq(queue, maps.Keys(arrows[next]))
			}
		}
		return seen
	}
	done := map[string]bool{}
	for _, room := range slices.Sorted(maps.Keys(arrows)) {
		if done[room] || !reach(room)[room] {
			continue
		}
		group := []string{room}
		for other := range reach(room) {
			if other != room && reach(other)[room] {
				group = append(group, other)
				done[other] = true
			}
		}
		slices.Sort(group)
		groups = append(groups, group)
	}
	return groups
}

// depth is the number of layers that imports make below and with name.
func depth(arrows map[string]map[string]bool, name string, seen map[string]int) int {
	if d, ok := seen[name]; ok {
		return d
	}
	seen[name] = 1 // ends a circle
	d := 1
	for _, to := range slices.Sorted(maps.Keys(arrows[name])) {
		d = max(d, 1+depth(arrows, to, seen))
	}
	seen[name] = d
	return d
}

func printPackages(out io.Writer, all map[string]*pkg, r rules) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "package\tfiles\tlines\ttest lines\timports\t")
	for _, name := range slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(boolInt(r.isSupport(a)), boolInt(r.isSupport(b))), cmp.Compare(a, b))
	}) {
		p, note := all[name], ""
		if r.isSupport(name) {
			note = "support"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", name, p.files, p.lines, p.testLines, len(p.imports), note)
	}
	_ = w.Flush()
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func printTotals(out io.Writer, all, product map[string]*pkg, r rules, inside int, rooms map[string]map[string]bool, circles [][]string, up int) {
	var files, lines, support, tests, arrows, layers, pkgArrows int
	for name, p := range all {
		tests += p.testLines
		if product[name] == nil {
			support += p.lines
			continue
		}
		files += p.files
		lines += p.lines
		pkgArrows += len(p.imports)
	}
	seen := map[string]int{}
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		arrows += len(rooms[room])
		layers = max(layers, depth(rooms, room, seen))
	}
	fmt.Fprintf(out, "\nproduct: %d packages, %d files, %d lines; support: %d packages, %d lines; tests: %d lines\n",
		len(product), files, lines, len(all)-len(product), support, tests)
	fmt.Fprintf(out, "rooms of internal/: %d; of product: %d in %d layers, %d import arrows between them (%d between packages), %d circles, %d arrows upward\n",
		inside, len(rooms), layers, arrows, pkgArrows, len(circles), up)
}
