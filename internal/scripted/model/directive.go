package model

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// ParseDirectives reads the directives of a prompt, in order, one step each:
//
//	[[exec: CMD]]        run CMD with the shell tool
//	[[execlong: CMD]]    the same, keeping the tool call open while it runs
//	[[escalate: CMD]]    the same, asking to leave the CLI's own sandbox
//	[[patch: TEXT]]      apply TEXT with apply_patch; \n in it is a line end
//	[[read: PATH]]       read PATH with Claude Code's Read
//	[[write: PATH|TEXT]] write TEXT with its Write
//	[[glob: PATTERN]]    look for files with its Glob
//	[[grep: PATTERN]]    look into files with its Grep
//	[[tool: NAME JSON]]  call any tool with an object as input, in which "{{NAME}}"
//	                     is the member NAME of the last tool output
//	[[text: TEXT]]       answer TEXT
//	[[slow: N]]          answer in N deltas, one a second
//	[[hang: N]]          silence for N seconds; [[hang]] until the client leaves
//	[[status: N]]        HTTP error N
//	[[incomplete]]       end the stream without its terminal event
//	[[megabyte: N]]      answer of N bytes; [[megabyte: N multibyte]] in wide characters
//
// An argument ends at the first "]]", so a command cannot hold one. Brackets
// with any other name are ordinary text. A known name with an argument that
// cannot be played is an error that names the directive, not its argument.
func ParseDirectives(prompt string) ([]Step, error) {
	var steps []Step
	for rest := prompt; ; {
		_, after, ok := strings.Cut(rest, "[[")
		if !ok {
			return steps, nil
		}
		name, arg, tail, ok := cutDirective(after)
		if !ok {
			// "[[[exec: x]]" holds a directive at its second bracket.
			rest = rest[strings.Index(rest, "[[")+1:]
			continue
		}
		step, err := directiveStep(name, arg)
		if err != nil {
			return nil, fmt.Errorf("directive [[%s]]: %w", name, err)
		}
		steps, rest = append(steps, step), tail
	}
}

// cutDirective splits what follows "[[" into name, argument and the text
// behind "]]"; ok is false if no known directive starts here.
func cutDirective(s string) (name, arg, tail string, ok bool) {
	end := strings.IndexFunc(s, func(r rune) bool { return r < 'a' || r > 'z' })
	if end <= 0 {
		return "", "", "", false
	}
	name, s = s[:end], s[end:]
	switch name {
	case "exec", "execlong", "escalate", "patch", "read", "write", "glob", "grep", "tool", "text", "slow", "hang", "status", "incomplete", "megabyte":
	default:
		return "", "", "", false
	}
	if tail, ok = strings.CutPrefix(s, "]]"); ok {
		return name, "", tail, true
	}
	if s, ok = strings.CutPrefix(s, ":"); !ok {
		return "", "", "", false
	}
	arg, tail, ok = strings.Cut(s, "]]")
	return name, strings.TrimLeft(arg, " \t\r\n"), tail, ok
}

func directiveStep(name, arg string) (Step, error) {
	var step Step
	var err error
	switch name {
	case "exec", "execlong", "escalate":
		step.Exec = &Exec{Cmd: arg, Long: name == "execlong", Escalate: name == "escalate"}
	case "patch":
		text := strings.ReplaceAll(arg, `\n`, "\n")
		step.ApplyPatch = &text
	case "read", "write", "glob", "grep", "tool":
		step.Tool, err = toolDirective(name, arg)
	case "text":
		step.Answer = &arg
	case "slow":
		step.Slow = &Slow{IntervalMS: 1000}
		step.Slow.Deltas, err = wholeNumber(arg)
	case "hang":
		step.Stall = &Stall{}
		if arg != "" {
			step.Stall.Seconds, err = wholeNumber(arg)
		}
	case "status":
		step.Status = &Status{}
		step.Status.Code, err = wholeNumber(arg)
	case "incomplete":
		step.Cut = &Cut{}
	case "megabyte":
		step.Megabyte = &Megabyte{}
		arg, step.Megabyte.Multibyte = strings.CutSuffix(arg, " multibyte")
		step.Megabyte.Bytes, err = wholeNumber(arg)
	}
	if err != nil {
		return Step{}, err
	}
	return step, step.validate()
}

func wholeNumber(arg string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(arg))
	if err != nil {
		return 0, fmt.Errorf("the argument must be a whole number")
	}
	return n, nil
}

// toolDirective is a call of one of Claude Code's tools.
func toolDirective(name, arg string) (*ToolCall, error) {
	var tool string
	input := map[string]string{}
	switch name {
	case "read":
		tool, input["file_path"] = "Read", arg
	case "write":
		tool = "Write"
		input["file_path"], input["content"], _ = strings.Cut(arg, "|")
	case "glob":
		tool, input["pattern"] = "Glob", arg
	case "grep":
		tool, input["pattern"] = "Grep", arg
	case "tool":
		tool, arg, _ = strings.Cut(arg, " ")
		return &ToolCall{Name: tool, Input: json.RawMessage(arg)}, nil
	}
	encoded, err := json.Marshal(input)
	return &ToolCall{Name: tool, Input: encoded}, err
}
