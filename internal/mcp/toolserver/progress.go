package toolserver

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Timing of progress notifications.
const (
	// ProgressInterval is the least time between two of one call.
	ProgressInterval = time.Second

	// HeartbeatInterval is the longest silence of a tool that has a heartbeat.
	// Clients that restart their own timer on progress wait 60 s and more.
	HeartbeatInterval = 15 * time.Second
)

// progress sends the messages of one call: the first at once, then the latest
// of each interval. Its goroutine alone touches the output, so that a tool never
// waits for a client that does not read.
type progress struct {
	ctx       context.Context // of the call
	send      func(ctx context.Context, message string) error
	heartbeat func(elapsed time.Duration) string

	wake  chan struct{} // a message was set
	ended chan struct{} // the tool has returned
	done  chan struct{} // the goroutine has returned

	mu     sync.Mutex
	latest string // "" if there is nothing to send
}

func startProgress(ctx context.Context, send func(context.Context, string) error, heartbeat func(time.Duration) string) *progress {
	p := &progress{
		ctx: ctx, send: send, heartbeat: heartbeat,
		wake: make(chan struct{}, 1), ended: make(chan struct{}), done: make(chan struct{}),
	}
	go p.run()
	return p
}

// report sets the message to send next.
func (p *progress) report(message string) {
	p.mu.Lock()
	p.latest = message
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// stop sends a message that is due and returns when nothing more will be sent.
// A message that came too soon after another is dropped: the answer follows.
func (p *progress) stop() {
	close(p.ended)
	<-p.done
}

func (p *progress) run() {
	defer close(p.done)
	timer := time.NewTimer(HeartbeatInterval)
	defer timer.Stop()
	start := time.Now()
	last, next := start, start // of the last message; the earliest time of the next one
	for {
		var due <-chan time.Time
		if p.pending() {
			timer.Reset(time.Until(next))
			due = timer.C
		} else if p.heartbeat != nil {
			timer.Reset(time.Until(last.Add(HeartbeatInterval)))
			due = timer.C
		}
		ended := false
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
			continue
		case <-p.ended:
			ended = true
			if time.Now().Before(next) {
				return
			}
		case <-due:
		}
		message := p.take()
		if message == "" && p.heartbeat != nil && !ended {
			message = p.heartbeat(time.Since(start))
		}
		if message != "" && p.send(p.ctx, message) != nil || ended {
			return
		}
		last = time.Now()
		next = last.Add(ProgressInterval)
	}
}

func (p *progress) pending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest != ""
}

func (p *progress) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	message := p.latest
	p.latest = ""
	return message
}

// sendProgress writes one notification. One at a time may wait for the output,
// so that those of calls cancelled meanwhile are never written. The number
// counts all notifications of the server and therefore rises in each call.
func (s *session) sendProgress(ctx context.Context, token json.RawMessage, message string) error {
	select {
	case s.sending <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.sending }()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.sent++
	return s.conn.Notify(noteProgress, progressParams{Token: token, Progress: s.sent, Message: message})
}
