package codex

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"mcpagents/internal/agent/job"
)

// progressLabel begins every message about Codex.
const progressLabel = "Codex: "

// maxMessage is the longest message, in code points.
const maxMessage = 200

// clock calls a function when a time has passed, unless it is taken back.
type clock func(time.Duration, func()) (cancel func())

// progress is what a blocking caller is told while its turn runs: statuses, at
// most one in a spacing, the latest of which wins, and a notice when nothing was
// told for a while. It is nil-safe: a caller without a token is told nothing.
type progress struct {
	// Spacing is the least time between two statuses, Silence the longest
	// without any message; 0 switches the notice off.
	Spacing, Silence time.Duration
	After            clock
	// Send delivers a message; it replaces one that has not left.
	Send func(progressMessage)
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

// progressMessage is the params of a progress notification.
type progressMessage struct {
	ProgressToken json.RawMessage `json:"progressToken"`
	Progress      int             `json:"progress"`
	Message       string          `json:"message"`
}

// validToken reports whether a progress token is one: a string or a finite
// number.
func validToken(raw json.RawMessage) bool {
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
func (p *progress) Start(token json.RawMessage) {
	p.token = token
	p.listen()
}

// Tell takes a text of the turn, empty for none.
func (p *progress) Tell(text string) {
	if p == nil || text == "" {
		return
	}
	message := job.Message(progressLabel+text, maxMessage)
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

func (p *progress) status(message string) {
	p.ready = time.Now().Add(p.Spacing)
	p.send(message)
}

func (p *progress) send(message string) {
	p.count++
	p.last = message
	p.listen()
	p.Send(progressMessage{p.token, p.count, message})
}

// listen waits for the silence after a message.
func (p *progress) listen() {
	if p.Silence <= 0 {
		return
	}
	if p.quiet != nil {
		p.quiet()
	}
	p.quiet = p.After(p.Silence, func() {
		p.send(progressLabel + fmt.Sprintf("still running; last activity %ds ago", int(p.Age()/time.Second)))
	})
}

// Stop ends the telling.
func (p *progress) Stop() {
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
