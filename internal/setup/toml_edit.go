package setup

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlFormat is a TOML file with a table of servers. An entry is a block of
// tables at the end of the file, [servers.name] and those below it.
type tomlFormat struct {
	servers string
}

// expression is a line (or a value's several lines) of a TOML file.
type expression struct {
	start, end int      // whole lines, without the last line break
	key        []string // in full, the table's name included
	table      bool     // a header
	array      bool     // of an array of tables
}

var bom = []byte("\ufeff")

// scan returns the expressions of a valid file and its decoded content.
func (f tomlFormat) scan(src []byte) ([]expression, map[string]any, error) {
	var all map[string]any
	body := bytes.TrimPrefix(src, bom)
	if err := toml.Unmarshal(body, &all); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ := at.Position()
			return nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
		return nil, nil, err
	}
	offset := len(src) - len(body)
	var p unstable.Parser
	p.Reset(body)
	var list []expression
	var table []string
	for p.NextExpression() {
		n := p.Expression()
		var key []string
		var first unstable.Range
		for it := n.Key(); it.Next(); {
			if key == nil {
				first = it.Node().Raw
			}
			key = append(key, string(it.Node().Data))
		}
		e := expression{start: int(first.Offset), end: int(first.Offset + first.Length)}
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, e.key, e.table, e.array = key, key, true, n.Kind == unstable.ArrayTable
		default:
			e.key, e.end = slices.Concat(table, key), int(n.Raw.Offset+n.Raw.Length)
		}
		e.start = offset + bytes.LastIndexByte(body[:e.start], '\n') + 1
		if e.end = offset + e.end; e.end < len(src) {
			if n := bytes.IndexByte(src[e.end:], '\n'); n < 0 {
				e.end = len(src)
			} else if e.end += n; src[e.end-1] == '\r' {
				e.end--
			}
		}
		list = append(list, e)
	}
	return list, all, p.Error()
}

func (f tomlFormat) entries(src []byte) ([]existing, error) {
	exprs, all, err := f.scan(src)
	if err != nil {
		return nil, err
	}
	value, found := all[f.servers]
	servers, ok := value.(map[string]any)
	if found && !ok {
		return nil, fmt.Errorf("%s is no table", f.servers)
	}
	var list []existing
	seen := make(map[string]bool)
	for _, e := range exprs {
		if len(e.key) < 2 || e.key[0] != f.servers || seen[e.key[1]] {
			continue
		}
		seen[e.key[1]] = true
		list = append(list, existing{name: e.key[1], value: servers[e.key[1]], line: lineAt(src, e.start)})
	}
	if len(list) < len(servers) {
		return nil, fmt.Errorf("%s is an inline table, to which nothing can be added: write it as [%s.NAME] tables", f.servers, f.servers)
	}
	return list, nil
}

func (f tomlFormat) decoded(e entry) (any, error) {
	var all map[string]map[string]any
	err := toml.Unmarshal([]byte(f.block("\n", "x", e)), &all)
	return all[f.servers]["x"], err
}

// block is the entry without a final line break.
func (f tomlFormat) block(nl, name string, e entry) string {
	header := f.servers + "." + bare(name)
	lines := []string{"[" + header + "]"}
	for _, x := range e.fields {
		if list, ok := x.value.([]string); ok && len(list) > wide {
			lines = append(lines, x.name+" = [", "  "+strings.Join(quoteAll(list), ","+nl+"  ")+",", "]")
			continue
		}
		lines = append(lines, x.name+" = "+literal(x.value, ", "))
	}
	for _, tool := range e.approve {
		lines = append(lines, "", "["+header+".tools."+bare(tool)+"]", `approval_mode = "approve"`)
	}
	return strings.Join(lines, nl)
}

// bare writes a key without quotes where TOML lets it.
func bare(key string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if key != "" && strings.IndexFunc(key, func(r rune) bool { return !plain(r) }) < 0 {
		return key
	}
	return quote(key)
}

// add appends the entry. A blank line comes before it where something is there
// already, and it ends with a line break only where the file did: both tell
// remove what was there.
func (f tomlFormat) add(src []byte, newFile bool, name string, e entry) ([]byte, error) {
	nl := newline(src)
	block := f.block(nl, name, e)
	switch {
	case newFile:
		block += nl
	case len(bytes.TrimPrefix(src, bom)) == 0:
	case bytes.HasSuffix(src, []byte("\n")):
		block = nl + block + nl
	default:
		block = nl + nl + block
	}
	return append(slices.Clip(src), block...), nil
}

func (f tomlFormat) remove(src []byte, name string) ([]byte, error) {
	exprs, _, err := f.scan(src)
	if err != nil {
		return nil, err
	}
	var blocks []splice
	ours := false // the expression before was the entry's
	for i, e := range exprs {
		mine := len(e.key) > 1 && e.key[0] == f.servers && e.key[1] == name
		if mine && (e.array || (!e.table && !ours)) {
			return nil, fmt.Errorf("line %d: the entry is not written as a table [%s.%s]: remove it by hand", lineAt(src, e.start), f.servers, bare(name))
		}
		if mine && ours {
			blocks[len(blocks)-1].end = exprs[i].end
		} else if mine {
			blocks = append(blocks, splice{start: e.start, end: e.end})
		}
		ours = mine
	}
	if len(blocks) == 0 {
		return nil, errors.New("the entry is not there")
	}
	if b := blocks[0]; b.start == 0 && b.end+len(newline(src)) == len(src) {
		return nil, nil // the file that was not there
	}
	for i := range blocks {
		blocks[i] = widen(src, blocks[i])
	}
	return apply(src, blocks...), nil
}

// widen adds to a block the line breaks that add put around it.
func widen(src []byte, b splice) splice {
	back := func() {
		if b.start > 0 && src[b.start-1] == '\n' {
			if b.start--; b.start > 0 && src[b.start-1] == '\r' {
				b.start--
			}
		}
	}
	blank := bytes.HasSuffix(bytes.TrimSuffix(src[:b.start], []byte("\n")), []byte("\n")) ||
		bytes.HasSuffix(src[:b.start], []byte("\n\r\n"))
	if b.end == len(src) { // no line break behind it, so two before it
		back()
		if blank {
			back()
		}
		return b
	}
	if src[b.end] == '\r' {
		b.end++
	}
	b.end++
	if blank {
		back()
	}
	return b
}
