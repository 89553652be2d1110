package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/sandbox/wire"
)

// Outcome describes the end of a session.
type Outcome struct {
	Code   int // the exit status of the process
	Reason string
	// Emit gives requests that are still open an error, because the client may
	// read it.
	Emit bool
}

// Stopped is the outcome of a session whose context was cancelled.
func Stopped(cause error) Outcome {
	code := 1
	if s, ok := errors.AsType[stdio.Signal](cause); ok {
		code = s.Status()
	}
	return Outcome{Code: code, Reason: cause.Error()}
}

// OutputFailed is the outcome of a session whose client takes nothing more.
func OutputFailed(err error, log *slog.Logger) Outcome {
	if errors.Is(err, stdio.ErrOutputClosed) {
		return Outcome{Reason: "client closed its input"}
	}
	log.Error("write to the client failed", "error", err)
	return Outcome{Code: 1, Reason: "output error"}
}

// Flush ends the line that the client has half of, and gives it DrainTime to read
// what is queued.
func Flush(out *Output, log *slog.Logger) {
	out.Finish()
	ctx, cancel := context.WithTimeout(context.Background(), DrainTime)
	defer cancel()
	if err := out.Flush(ctx); err != nil && !errors.Is(err, stdio.ErrOutputClosed) {
		log.Warn("answers were not written", "error", err)
	}
}

// Ending is how a command ended.
type Ending struct {
	Exit wire.Exit
	Err  error // its sandbox was lost
}

// Code is the exit status of a bridge for the end of its command: the command's
// own, or 128+n for the signals that users send, and 128 for others.
func (e Ending) Code() int {
	if e.Err != nil {
		return 1
	}
	switch e.Exit.Signal {
	case 0:
		return e.Exit.Code
	case 1, 2, 9, 15:
		return 128 + e.Exit.Signal
	}
	return 128
}

// Reason says how the command of that name ended. What its users call the signal
// that may have ended it is the caller's to say.
func (e Ending) Reason(name, signal string) string {
	switch {
	case e.Err != nil:
		return "the sandbox of " + name + " was lost: " + e.Err.Error()
	case e.Exit.Reason == wire.ReasonMemory:
		return name + " was killed because its sandbox ran out of memory; raise --memory"
	case e.Exit.Reason == wire.ReasonLifetime:
		return name + " reached the lifetime of its sandbox"
	case e.Exit.Reason == wire.ReasonSpawnFailed:
		return name + " could not be started: " + e.Exit.Text
	}
	return e.status(name, signal)
}

// status tells the signal or the exit code, whatever the reason for it.
func (e Ending) status(name, signal string) string {
	if e.Exit.Signal != 0 {
		return name + " killed by " + signal
	}
	return fmt.Sprintf("%s exited with code %d", name, e.Exit.Code)
}
