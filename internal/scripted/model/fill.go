package model

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// blank is a string of a tool call's input that stands for a value of the last
// tool output: "{{jobId}}" for that of its member jobId.
var blank = regexp.MustCompile(`"\{\{(\w+)\}\}"`)

// fill puts values of the last tool output into the blanks of a call's input,
// so that a script can go on with what a tool gave it, such as the id of a job.
func (c conversation) fill(call ToolCall) (*ToolCall, error) {
	var missing string
	call.Input = json.RawMessage(blank.ReplaceAllStringFunc(string(call.Input), func(quoted string) string {
		name := blank.FindStringSubmatch(quoted)[1]
		value, ok := memberOf(c.lastOutput, name)
		if !ok {
			missing = name
		}
		return value
	}))
	if missing != "" {
		return nil, fmt.Errorf("the last tool output has no string and no whole number called %s for the script's {{%s}}", missing, missing)
	}
	if !json.Valid(call.Input) { // a member's name cannot be a number
		return nil, fmt.Errorf("the input of the script's tool %s is no JSON once the last tool output is in it", call.Name)
	}
	return &call, nil
}

// memberOf finds the last member of that name in a text and returns its value
// as JSON: a string or a whole number. CLIs show JSON as it is, inside a JSON
// string, or between other words, so this looks for the member's form only.
func memberOf(text, name string) (value string, ok bool) {
	found := regexp.MustCompile(`\\*"`+name+`\\*"\s*:\s*(\\*"[^"\\]*\\*"|-?\d+)`).FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return "", false
	}
	return strings.ReplaceAll(found[len(found)-1][1], `\`, ""), true
}
