package setup

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sample is an entry as a client gets it.
func sample(c Client, docker bool) (string, entry) {
	s, err := serviceOf(c.Provider)
	if err != nil {
		panic(err)
	}
	return s.entry, newEntry(c, s, Request{Docker: docker, Dir: "/p", Home: "/h", Binary: `/bin/mcp-agents "x"`})
}

// checkEdit holds for every file: an entry that goes in comes out without a
// trace, the bytes around it stay in their order, and what cannot be done so is
// an error. It returns whether the entry went in.
func checkEdit(t require.TestingT, c Client, src []byte, exists, docker bool) bool {
	name, e := sample(c, docker)
	keep := bytes.Clone(src)
	list, err := c.format.entries(src)
	if err != nil {
		return false
	}
	for _, x := range list {
		if x.name == name {
			checkCut(t, c, src, name, list)
			return false
		}
	}
	want, err := c.format.decoded(e)
	require.NoError(t, err)
	edited, err := c.format.add(src, !exists, name, e)
	require.Equal(t, keep, src, "the input is not changed")
	if err != nil || checkAdded(c.format, &file{data: src, exists: exists}, edited, name, want) != nil {
		return false
	}
	require.True(t, subsequence(src, edited), "a byte outside the entry was lost")
	return true
}

// checkCut removes an entry that somebody else wrote: every byte that stays was
// there, and no other entry is harmed where the result is accepted.
func checkCut(t require.TestingT, c Client, src []byte, name string, before []existing) {
	edited, err := c.format.remove(src, name)
	if err != nil {
		return
	}
	require.True(t, subsequence(edited, src), "removing added a byte")
	after, err := c.format.entries(edited)
	if err != nil || len(after) != len(before)-1 {
		return // Run refuses it
	}
	i := 0
	for _, b := range before {
		if b.name != name {
			require.Equal(t, b.name, after[i].name)
			require.Equal(t, b.value, after[i].value)
			i++
		}
	}
}

// subsequence reports whether the bytes of short are in long, in their order.
func subsequence(short, long []byte) bool {
	for _, b := range long {
		if len(short) > 0 && short[0] == b {
			short = short[1:]
		}
	}
	return len(short) == 0
}

func TestAddThenRemoveIsIdentityJSON(t *testing.T) {
	for _, c := range clients {
		f, ok := c.format.(jsonFormat)
		if !ok {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			done, all := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				g := &jsonGen{t: t, f: f, nl: rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "nl")}
				src := g.file()
				_, err := f.entries([]byte(src))
				require.NoError(t, err, "the generator makes valid files: %q", src)
				all++
				if checkEdit(t, c, []byte(src), true, rapid.Bool().Draw(t, "docker")) {
					done++
				}
			})
			require.Greater(t, done*100, all*95, "hardly any file is refused")
		})
	}
}

// jsonGen makes JSON files in every layout.
type jsonGen struct {
	t  *rapid.T
	f  jsonFormat
	nl string
}

func (g *jsonGen) pick(options ...string) string { return rapid.SampledFrom(options).Draw(g.t, "part") }

// space is white space, with comments where they are allowed.
func (g *jsonGen) space() string {
	s := g.pick("", "", " ", g.nl, g.nl+"  ", g.nl+"\t", g.nl+g.nl+"    ")
	if g.f.comments && rapid.IntRange(0, 4).Draw(g.t, "comment") == 0 {
		s += g.pick("/* c */", "// c, \"x\": {"+g.nl, "/* { "+g.nl+" */", " // z"+g.nl+"  ")
	}
	return s
}

func (g *jsonGen) value(depth int) string {
	switch rapid.IntRange(0, 5).Draw(g.t, "kind") {
	case 0:
		if depth > 0 {
			return g.object(depth, "k", "\\u0061", "mcp\\u0053ervers")
		}
	case 1:
		if depth > 0 {
			return "[" + g.space() + g.value(depth-1) + g.space() + "]"
		}
	case 2:
		return g.pick("1", "-0.5e3", "true", "null")
	}
	return g.pick(`"s"`, `""`, `"\"}{,"`, `"// no"`, `"ü\u00e9"`)
}

func (g *jsonGen) object(depth int, keys ...string) string {
	var members []string
	for i := range rapid.IntRange(0, 3).Draw(g.t, "members") {
		members = append(members, fmt.Sprintf(`%s"%s%d"%s:%s%s%s`, g.space(), g.pick(keys...), i, g.space(), g.space(), g.value(depth-1), g.space()))
	}
	return g.braces(members)
}

func (g *jsonGen) braces(members []string) string {
	s := "{" + strings.Join(members, ",")
	if len(members) == 0 {
		s += g.space()
	} else if g.f.trailing && rapid.Bool().Draw(g.t, "trailing") {
		s += "," + g.space()
	}
	return s + "}"
}

func (g *jsonGen) file() string {
	var members []string
	for i := range rapid.IntRange(0, 2).Draw(g.t, "before") {
		members = append(members, fmt.Sprintf(`%s"b%d": %s%s`, g.space(), i, g.value(2), g.space()))
	}
	if rapid.Bool().Draw(g.t, "servers") {
		members = append(members, fmt.Sprintf(`%s"%s"%s:%s%s`, g.space(), g.f.servers, g.space(), g.object(2, "server", "x"), g.space()))
	}
	for i := range rapid.IntRange(0, 2).Draw(g.t, "behind") {
		members = append(members, fmt.Sprintf(`%s"a%d":%s%s`, g.space(), i, g.value(2), g.space()))
	}
	return g.pick("", "", "\ufeff") + g.pick("", g.nl) + g.braces(members) + g.pick("", g.nl, g.nl, g.nl+g.nl, " ")
}

func TestAddThenRemoveIsIdentityTOML(t *testing.T) {
	c, err := clientNamed("codex")
	require.NoError(t, err)
	done, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		src := tomlFile(t)
		_, err := c.format.entries([]byte(src))
		require.NoError(t, err, "the generator makes valid files: %q", src)
		all++
		if checkEdit(t, c, []byte(src), true, rapid.Bool().Draw(t, "docker")) {
			done++
		}
	})
	require.Greater(t, done*100, all*95, "hardly any file is refused")
}

func tomlFile(t *rapid.T) string {
	pick := func(options ...string) string { return rapid.SampledFrom(options).Draw(t, "part") }
	nl := pick("\n", "\r\n")
	var b strings.Builder
	b.WriteString(pick("", "", "\ufeff"))
	line := func(i int) {
		b.WriteString(pick("", "# c [x]"+nl, nl, nl+nl) + pick("", "  ", "\t"))
		b.WriteString(fmt.Sprintf("k%d = ", i) + pick("1", `"s # [a]"`, "'''"+nl+"[mcp_servers.claude-code]"+nl+"'''", "[ 1, # c"+nl+" 2 ]", "{ a = 1 }"))
		b.WriteString(pick("", " # c", "\t") + nl)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "top") {
		line(i)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "tables") {
		b.WriteString(pick("", nl) + fmt.Sprintf(pick("[t%d]", "[[a%d]]", "[mcp_servers.s%d]", `[ mcp_servers . "s %d" . tools ]`), i) + pick("", " # c") + nl)
		for j := range rapid.IntRange(0, 2).Draw(t, "lines") {
			line(j)
		}
	}
	return strings.TrimSuffix(b.String(), pick("", "", nl)) + pick("", "", nl, nl+"# end", "  ")
}

func FuzzEditJSON(f *testing.F) {
	for _, seed := range []string{"", "{}", "\ufeff{\r\n}\r\n", `{"mcpServers":{"a":1}}`, "{\n\t\"servers\": {\n\t\t\"a\": 1, // c\n\t},\n}\n",
		`{"mcpServers":{"codex":{"command":"x"},"b":[]}}`, "// c\n{ /* d */ }", `{"mcpServers": {"codex": 1 // x` + "\n , \"b\": 2}}"} {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, src []byte, docker bool) {
		for _, c := range clients {
			if _, ok := c.format.(jsonFormat); ok {
				checkEdit(t, c, src, true, docker)
			}
		}
	})
}

func FuzzEditTOML(f *testing.F) {
	for _, seed := range []string{"", "a = 1", "\ufeff[t]\r\nb = 2\r\n", "[mcp_servers.x]\ncommand = 'y' # c\n\n", "mcp_servers.a.b = 1\n",
		"[mcp_servers.claude-code]\nx = 1\n[z]\n[mcp_servers.claude-code.tools]\n", "[[mcp_servers]]\n", "a = \"\"\"\n[b]\n\"\"\""} {
		f.Add([]byte(seed), true)
	}
	c, err := clientNamed("codex")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, src []byte, docker bool) {
		checkEdit(t, c, src, true, docker)
	})
}
