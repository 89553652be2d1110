package turn

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"mcpagents/internal/agent/job"
)

// Label begins every message about Codex.
const Label = "Codex: "

// maxMessage is the longest message, in code points.
const maxMessage = 200

// Clock calls a function when a time has passed, unless it is taken back.
type Clock func(time.Duration, func()) (cancel func())

// Progress is what a blocking caller is told while its turn runs: statuses, at
// most one in a spacing, the latest of which wins, and a notice when nothing was
// told for a while. It is nil-safe: a caller without a token is told nothing.
type Progress struct {
	// Spacing is the least time between two statuses, Silence the longest
	// without any message; 0 switches the notice off.
	Spacing, Silence time.Duration
	After            Clock
	// Send delivers a message; it replaces one that has not left.
	Send func(Message)
	// Age is how long ago the turn's last event was.
	Age func() time.Duration

	token   json.RawMessage
	count   int
	last    string
	ready   time.Time // when a status may be told
	pending string
	timer   func() // for the pending status
	quiet   func() // for the notice
}

// Message is the params of a progress notification.
type Message struct {
	ProgressToken json.RawMessage `json:"progressToken"`
	Progress      int             `json:"progress"`
	Message       string          `json:"message"`
}

// ValidToken reports whether a progress token is one: a string or a finite
// number.
func ValidToken(raw json.RawMessage) bool {
	if len(raw) == 0 || !json.Valid(raw) {
		return false
	}
	if raw[0] == '"' {
		return true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && !math.IsInf(f, 0)
}

// Start begins to tell the caller with the token, which must be valid.
func (p *Progress) Start(token json.RawMessage) {
	p.token = token
	p.listen()
}

// Tell takes a text of the turn, empty for none.
func (p *Progress) Tell(text string) {
	if p == nil || text == "" {
		return
	}
	message := job.Message(Label+text, maxMessage)
	newest := p.last
	if p.pending != "" {
		newest = p.pending
	}
	if message == newest {
		return
	}
	if p.pending == "" && !time.Now().Before(p.ready) {
		p.status(message)
		return
	}
	if p.pending == "" {
		p.timer = p.After(time.Until(p.ready), func() {
			message := p.pending
			p.pending = ""
			if message != p.last {
				p.status(message)
			}
		})
	}
	p.pending = message
}

func (p *Progress) status(message string) {
	p.ready = time.Now().Add(p.Spacing)
	p.send(message)
}

func (p *Progress) send(message string) {
	p.count++
	p.last = message
	p.listen()
	p.Send(Message{p.token, p.count, message})
}

// listen waits for the silence after a message.
func (p *Progress) listen() {
	if p.Silence <= 0 {
		return
	}
	if p.quiet != nil {
		p.quiet()
	}
	p.quiet = p.After(p.Silence, func() {
		p.send(Label + fmt.Sprintf("still running; last activity %ds ago", int(p.Age()/time.Second)))
	})
}

// Stop ends the telling.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
	for _, cancel := range []func(){p.timer, p.quiet} {
		if cancel != nil {
			cancel()
		}
	}
	p.timer, p.quiet, p.pending = nil, nil, ""
}
