package claude

import (
	"bytes"
	"errors"
	"io"
)

const (
	// maxEvent is the longest line of the stream, in bytes.
	maxEvent = 20 << 20
	// maxResult is the longest result of a job, in bytes of UTF-8.
	maxResult = 10 << 20
)

// errEventTooLong says that a line was longer than the limit.
var errEventTooLong = errors.New("one output event exceeded the stream safety limit")

// event is what a line of the stream means for a review.
type event struct {
	status string  // what to show, empty if that does not change
	result *result // the end of the turn
}

// parseEvent reads one line. What it does not know it ignores: the stream grows
// with each release. alive says that the line is a JSON object, which shows that
// the CLI works, whatever it says.
func parseEvent(line []byte) (e event, alive bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return event{}, false
	}
	members := object(line)
	if members == nil {
		return event{}, false
	}
	kind, _ := text(members["type"])
	switch kind {
	case "system":
		e.status = "reviewing"
		if subtype, _ := text(members["subtype"]); subtype == "init" {
			e.status = "reviewer initialized"
		}
	case "assistant", "stream_event":
		e.status = "reviewing"
	case "tool_progress", "tool_use_summary":
		e.status = "inspecting repository"
	case "api_retry", "rate_limit_event":
		e.status = "waiting for provider"
	case "result":
		r, _ := resultOf(line)
		if s, ok := text(members["result"]); ok {
			r.text = s
		} else {
			r.text = "" // only a string is a verdict
		}
		e.result = &r
	}
	return e, true
}

// readLines hands over the lines of r, the last one too if it is unterminated,
// until r ends (nil), a line is longer than limit (errEventTooLong) or reading
// fails.
func readLines(r io.Reader, limit int, each func([]byte)) error {
	var line []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.Read(chunk)
		for rest := chunk[:n]; len(rest) > 0; {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				line = append(line, rest...)
				rest = nil
			} else {
				line = append(line, rest[:end]...)
				rest = rest[end+1:]
			}
			if len(line) > limit {
				return errEventTooLong
			}
			if end >= 0 {
				each(line)
				line = line[:0]
			}
		}
		if err != nil {
			if len(line) > 0 {
				each(line)
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
