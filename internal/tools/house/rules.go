package main

import (
	"fmt"
	"strings"
)

// rules are those of house.txt. A line is a keyword and its words:
//
//	layer ROOM…        rooms of one layer; a layer imports those below it only
//	support ROOM…      tests, test programs and developer tools: product does not import them
//	small PKG REASON   why a package of product may stay below minLines
//	allow PHRASE FILE  a phrase of the word list that a file must keep
//	limit NAME NUMBER  rooms, packages
type rules struct {
	layers  [][]string
	support []string
	small   map[string]string
	allow   map[string][]string // by phrase
	limits  map[string]int
}

func parseRules(text string) (rules, error) {
	r := rules{small: map[string]string{}, allow: map[string][]string{}, limits: map[string]int{}}
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := r.add(words[0], words[1:]); err != nil {
			return r, fmt.Errorf("house.txt:%d: %w", n+1, err)
		}
	}
	return r, nil
}

func (r *rules) add(keyword string, words []string) error {
	switch {
	case keyword == "layer" && len(words) > 0:
		r.layers = append(r.layers, words)
	case keyword == "support":
		r.support = append(r.support, words...)
	case keyword == "small" && len(words) > 1:
		r.small[words[0]] = strings.Join(words[1:], " ")
	case keyword == "allow" && len(words) > 1:
		phrase := strings.ReplaceAll(words[0], "_", " ")
		r.allow[phrase] = append(r.allow[phrase], words[1:]...)
	case keyword == "limit" && len(words) == 2:
		var n int
		if _, err := fmt.Sscan(words[1], &n); err != nil {
			return fmt.Errorf("limit %s: %w", words[0], err)
		}
		r.limits[words[0]] = n
	default:
		return fmt.Errorf("no rule of the form %q", keyword+" "+strings.Join(words, " "))
	}
	return nil
}

// layerOf returns the layer of a package, 0 for the highest, by the longest room
// that holds it; -1 if no layer names it.
func (r *rules) layerOf(pkg string) int {
	layer, longest := -1, 0
	for i, rooms := range r.layers {
		for _, room := range rooms {
			if within(pkg, room) && len(room) > longest {
				layer, longest = i, len(room)
			}
		}
	}
	return layer
}

// isSupport reports whether a package is no part of the product. A layer that
// names it exactly makes it one.
func (r *rules) isSupport(pkg string) bool {
	for _, rooms := range r.layers {
		for _, room := range rooms {
			if room == pkg {
				return false
			}
		}
	}
	for _, room := range r.support {
		if within(pkg, room) {
			return true
		}
	}
	return false
}

// within reports whether pkg is room or lies below it.
func within(pkg, room string) bool { return pkg == room || strings.HasPrefix(pkg, room+"/") }
