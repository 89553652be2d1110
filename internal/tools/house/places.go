package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// place matches `path/file.go:Symbol` or `path/file.go:Type.Member` in a document.
var place = regexp.MustCompile("`([A-Za-z0-9_./-]+\\.go):([A-Za-z_][A-Za-z0-9_]*(?:\\.[A-Za-z_][A-Za-z0-9_]*)?)`")

// checkPlaces returns the places that documents name and that do not exist.
func checkPlaces(t tree, _ rules, out io.Writer) error {
	var faults broken
	count := 0
	for _, doc := range t.files {
		if filepath.Ext(doc) != ".md" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(t.dir, doc))
		if err != nil {
			return err
		}
		for n, line := range strings.Split(string(b), "\n") {
			for _, m := range place.FindAllStringSubmatch(line, -1) {
				count++
				if err := resolve(t.dir, m[1], m[2]); err != nil {
					faults = append(faults, fmt.Sprintf("%s:%d: %v", doc, n+1, err))
				}
			}
		}
	}
	fmt.Fprintf(out, "places: %d in documents\n", count)
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// resolve returns an error unless the file declares the symbol.
func resolve(dir, file, symbol string) error {
	tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("%s:%s: %w", file, symbol, err)
	}
	for _, d := range tree.Decls {
		if slices.Contains(declared(d), symbol) {
			return nil
		}
	}
	return fmt.Errorf("%s declares no %s", file, symbol)
}

// declared are the names that a declaration makes: functions, methods as
// Type.Method, types, their fields and interface methods as Type.Field, constants
// and variables.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		recv := d.Recv.List[0].Type
		if star, ok := recv.(*ast.StarExpr); ok {
			recv = star.X
		}
		if generic, ok := recv.(*ast.IndexExpr); ok {
			recv = generic.X
		}
		if id, ok := recv.(*ast.Ident); ok {
			return []string{id.Name + "." + d.Name.Name}
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
				for _, member := range members(s.Type) {
					names = append(names, s.Name.Name+"."+member)
				}
			case *ast.ValueSpec:
				for _, id := range s.Names {
					names = append(names, id.Name)
				}
			}
		}
	}
	return names
}

func members(t ast.Expr) (names []string) {
	var list *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, id := range f.Names {
			names = append(names, id.Name)
		}
	}
	return names
}
