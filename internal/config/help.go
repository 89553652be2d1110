package config

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// helpWidth is the longest line of the help text, in characters.
const helpWidth = 100

// Command is a subcommand as the help text lists it.
type Command struct {
	Name  string
	Short string // one line
}

// Help returns the server's help text, of the given version without its "v".
// Only the commands that are given are named.
func Help(version string, commands []Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "mcp-agents v%s\n", version)
	b.WriteString("Coding-agent CLIs and a browser as MCP tools, each in a disposable sandbox.\n\n")
	b.WriteString("Usage:\n  mcp-agents [--provider <name>] [flags]\n")
	if len(commands) > 0 {
		b.WriteString("  mcp-agents <command> [flags]\n\nCommands:\n")
		for _, c := range commands {
			wrap(&b, fmt.Sprintf("  %-9s ", c.Name), strings.Repeat(" ", 12), c.Short)
		}
		b.WriteString("\nWithout a command it serves MCP on stdin and stdout until stdin ends.\n")
	}
	var group Group
	for _, f := range table {
		if f.Group != group {
			if group == GroupBrowser {
				browserNotes(&b)
			}
			group = f.Group
			fmt.Fprintf(&b, "\n%s:\n", group)
		}
		f.describe(&b)
	}
	b.WriteString("\nHyphen and underscore are the same in a flag, and \"--flag value\" is \"--flag=value\".\n" +
		"A flag wins over its environment variable. An error in either ends with status 1.\n")
	return b.String()
}

func (f *Flag) describe(b *strings.Builder) {
	b.WriteString("  ")
	if f.Short != "" {
		fmt.Fprintf(b, "-%s, ", f.Short)
	}
	b.WriteString("--" + f.Name)
	switch {
	case f.Value == "":
	case strings.Contains(f.Value, "|"):
		b.WriteString(" " + f.Value)
	default:
		fmt.Fprintf(b, " <%s>", f.Value)
	}
	b.WriteString("\n")
	text := f.Help
	if f.Repeatable {
		text += " Repeatable."
	}
	if f.Default != "" {
		text += " Default: " + f.Default + "."
	}
	const indent = "      "
	wrap(b, indent, indent, text)
	if f.Env != "" {
		b.WriteString(indent + "Environment: " + f.Env + "\n")
	}
}

// browserNotes explains the two numbers that users of a lease helper meet.
func browserNotes(b *strings.Builder) {
	b.WriteString("\n")
	wrap(b, "  ", "  ", "The lease helper's acquire and status calls get --timeout less 18 seconds, which are "+
		"reserved for the identity check and the cleanup, and never less than 1 second: with a --timeout below 20 "+
		"they have next to no time. These flags are refused with any other provider.")
}

// wrap writes the text in lines of at most helpWidth characters, broken at
// spaces.
func wrap(b *strings.Builder, first, rest, text string) {
	line, empty := first, true
	for word := range strings.FieldsSeq(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > helpWidth {
			b.WriteString(line + "\n")
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
