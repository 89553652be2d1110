package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"mcpagents/internal/lease"
	"mcpagents/internal/relay"
	"mcpagents/internal/stdio"
	"mcpagents/internal/wire"
)

// Bounds of the wind-down.
const (
	// drainTime is how long the end of a child's output is waited for after
	// the child, how long the answers of the handshake are waited for when the
	// client has sent its last message, and how long it may take to read.
	drainTime = 2 * time.Second
	// closeTime bounds the end of a child: a container takes longer than a process.
	closeTime = 30 * time.Second
)

// verdict is how a bridge ends.
type verdict struct {
	code   int
	reason string
	// emit says that somebody may read the errors of requests that are still open.
	emit bool
}

// finish ends the event loop. The first verdict counts.
func (b *bridge) finish(v verdict) {
	if b.verdict == nil {
		b.verdict = &v
	}
}

// stopped ends the bridge because its context ended.
func (b *bridge) stopped(cause error) {
	code := 1
	if s, ok := errors.AsType[stdio.Signal](cause); ok {
		code = s.Status()
	}
	b.finish(verdict{code: code, reason: cause.Error(), emit: true})
}

// outputFailed ends the bridge because the client takes nothing more.
func (b *bridge) outputFailed(err error) {
	if errors.Is(err, stdio.ErrOutputClosed) {
		b.finish(verdict{reason: "client closed its input"})
		return
	}
	b.log.Error("write to the client failed", "error", err)
	b.finish(verdict{code: 1, reason: "output error"})
}

// clientGone ends the bridge after the client's last message. A client that put
// the questions of its handshake at once still reads the answers; a call is not
// waited for, since its browser is given back.
func (b *bridge) clientGone() {
	b.gone, b.client = true, nil
	gone := verdict{reason: "client disconnected", emit: true}
	if !b.expectsAnswers() {
		b.finish(gone)
		return
	}
	b.alarms.After(drainTime, func() { b.finish(gone) })
}

// expectsAnswers reports whether a question of the handshake is open.
func (b *bridge) expectsAnswers() bool {
	for _, r := range b.open {
		if handshake(r.method) {
			return true
		}
	}
	return false
}

// childEnded takes how the child ended. Its output may still be under way.
func (b *bridge) childEnded(e ending) {
	s := b.session
	s.end = &e
	b.log.Info(e.reason())
	b.alarms.After(drainTime, func() {
		if b.session == s {
			b.sessionEnded()
		}
	})
	b.outputEnded()
}

// outputEnded goes on when the child and all of its output have ended.
func (b *bridge) outputEnded() {
	if s := b.session; s.end != nil && s.stdoutEnded && s.stderrEnded {
		b.sessionEnded()
	}
}

// sessionEnded takes the end of a child. What it wrote has come, or is not
// waited for any longer.
func (b *bridge) sessionEnded() {
	s := b.session
	if s.served {
		b.finish(verdict{code: s.end.code(), reason: s.end.reason(), emit: true})
		return
	}
	text := "it ended before it answered initialize (" + s.end.reason() + ")"
	if tail := strings.TrimSpace(strings.Join(s.tail, "\n")); tail != "" {
		text += ": " + tail
	}
	b.fail(errors.New(text))
}

// code is the exit status of the bridge for the child's end: its own, or 128+n
// for the signals that users send, and 128 for others.
func (e *ending) code() int {
	if e.err != nil {
		return 1
	}
	switch e.exit.Signal {
	case 0:
		return e.exit.Code
	case 1, 2, 9, 15:
		return 128 + e.exit.Signal
	}
	return 128
}

func (e *ending) reason() string {
	switch {
	case e.err != nil:
		return "the sandbox of chrome-devtools-mcp was lost: " + e.err.Error()
	case e.exit.Reason == wire.ReasonMemory:
		return "chrome-devtools-mcp was killed because its sandbox ran out of memory; raise --memory"
	case e.exit.Reason == wire.ReasonSpawnFailed:
		return "chrome-devtools-mcp could not be started: " + e.exit.Text
	case e.exit.Signal != 0:
		return fmt.Sprintf("chrome-devtools-mcp killed by signal %d", e.exit.Signal)
	}
	return fmt.Sprintf("chrome-devtools-mcp exited with code %d", e.exit.Code)
}

// shutdown answers what is owed, writes what is queued, kills the child, waits
// for everything that runs outside of the loop and gives the browser back.
func (b *bridge) shutdown() {
	b.log.Info("browser passthrough finalize: " + b.verdict.reason)
	if b.verdict.emit {
		b.takeHeld()
		b.abortOpen()
	}
	b.out.Finish()
	background := context.WithoutCancel(b.ctx)
	flushing, cancel := context.WithTimeout(background, drainTime)
	if err := b.out.Flush(flushing); err != nil && !errors.Is(err, stdio.ErrOutputClosed) {
		b.log.Warn("answers were not written", "error", err)
	}
	cancel()
	b.stopLaunch()
	b.stopAsks()
	for {
		if s := b.session; s != nil {
			b.session = nil
			b.closeSession(s)
		}
		if b.working == 0 {
			break
		}
		done := <-b.work
		b.working--
		done()
	}
	if g := b.lease; g != nil {
		b.releaseEnded(lease.Shutdown, b.cfg.Lessor.Release(background, g.record, lease.Shutdown))
	}
}

// takeHeld takes what a downstream that is still there has written of a line, if
// that is a whole message which only lacks its LF.
func (b *bridge) takeHeld() {
	s := b.session
	if s == nil || s.stdoutEnded || b.out.Full() {
		return
	}
	if held := s.splitter.Held(); json.Valid(held) {
		b.fromLine(relay.Piece{Data: held, First: true, Cut: true})
	}
}

// abortOpen answers every request that nobody will answer any more.
func (b *bridge) abortOpen() {
	for _, r := range b.inOrder() {
		switch {
		case b.open[r.key] != r: // answered meanwhile
		case r.cancelled:
			b.settle(r)
		case r.browser && r.forwarded:
			b.replace(r, "the bridge ended ("+b.verdict.reason+") before its result was verified")
		default:
			b.respondError(r, stdio.CodeAborted, "browser pass-through request aborted before responding ("+b.verdict.reason+")")
		}
	}
}

// closeSession kills the child of s and waits for its goroutines.
func (b *bridge) closeSession(s *session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), closeTime)
	defer cancel()
	if err := s.close(ctx); err != nil {
		b.log.Error("chrome-devtools-mcp was not ended cleanly", "error", err)
	}
}
