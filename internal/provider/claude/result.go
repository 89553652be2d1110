package claude

import (
	"encoding/json"
	"strings"

	"mcpagents/internal/provider/oneshot"
)

// result is what the CLI says at the end of a turn.
type result struct {
	text    string
	isError bool
}

// parseResult reads the output of a call that waits: an object of type result,
// or a list whose last one counts. Anything else is no result.
func parseResult(output string) (result, bool) {
	output = strings.TrimSpace(output)
	switch {
	case strings.HasPrefix(output, "{"):
		return resultOf(json.RawMessage(output))
	case strings.HasPrefix(output, "["):
		var events []json.RawMessage
		if json.Unmarshal([]byte(output), &events) != nil {
			return result{}, false
		}
		for i := len(events) - 1; i >= 0; i-- {
			if r, ok := resultOf(events[i]); ok {
				return r, true
			}
		}
	}
	return result{}, false
}

func resultOf(raw json.RawMessage) (result, bool) {
	members := object(raw)
	if kind, _ := text(members["type"]); kind != "result" {
		return result{}, false
	}
	return result{text: oneshot.Stringify(members["result"]), isError: string(members["is_error"]) == "true"}, true
}

// object returns the members of a JSON object, or nil. Decoding into a map and
// not into a struct keeps names exact: encoding/json takes "Type" for "type".
func object(raw json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

// text returns the value of a JSON string.
func text(raw json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}
