package browser

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// progress is what the caller of a waiting call is told.
type progress struct {
	token json.RawMessage
	count int
	since time.Time
	next  *proxy.Alarm
}

// progressTag is the tag of progress in the output queue.
type progressTag struct{ key string }

// progressToken returns the token in a request, nil if it has none that may be
// used: a string, or a number that is finite.
func progressToken(message []byte) json.RawMessage {
	at, ok := mcp.Lookup(message, "params", "_meta", "progressToken")
	if !ok {
		return nil
	}
	raw := at.Of(message)
	if _, isText := mcp.Text(raw); isText {
		return json.RawMessage(raw)
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err != nil || math.IsInf(f, 0) || math.IsNaN(f) || !json.Valid(raw) {
		return nil
	}
	return json.RawMessage(raw)
}

// tellProgress tells the caller of r that it waits, now and from time to time.
func (b *bridge) tellProgress(r *request, message []byte) {
	token := progressToken(message)
	if token == nil {
		return
	}
	r.progress = &progress{token: token, since: time.Now()}
	b.tell(r, "Browser: acquiring remote browser lease")
}

func (b *bridge) tell(r *request, text string) {
	p := r.progress
	if !b.Out.Full() { // else it can wait: the next one says the same
		p.count++
		b.Own(proxy.Notification("notifications/progress", struct {
			Token    json.RawMessage `json:"progressToken"`
			Progress int             `json:"progress"`
			Message  string          `json:"message"`
		}{p.token, p.count, text}), r.Framed, progressTag{r.Key})
	}
	p.next = b.Clock.After(b.cfg.Times.Progress, func() {
		b.tell(r, fmt.Sprintf("Browser: still acquiring remote browser lease (%.0fs elapsed)", math.Round(time.Since(p.since).Seconds())))
	})
}

// stopProgress says nothing more. What is queued leaves before the answer.
func (b *bridge) stopProgress(r *request) {
	if r.progress != nil {
		b.Clock.Cancel(r.progress.next)
	}
}

// hush withdraws what is queued as well: nothing may follow a cancel.
func (b *bridge) hush(r *request) {
	b.stopProgress(r)
	b.Out.Drop(progressTag{r.Key})
}
