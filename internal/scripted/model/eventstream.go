package model

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// eventStream writes server-sent events, each flushed at once.
type eventStream struct {
	w     http.ResponseWriter
	flush func() error
}

func newEventStream(w http.ResponseWriter) *eventStream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return &eventStream{w: w, flush: http.NewResponseController(w).Flush}
}

// send writes one event. An error means that the client is gone.
func (e *eventStream) send(name string, data any) error {
	encoded, err := encodeJSON(data)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, encoded); err != nil {
		return fmt.Errorf("send %s: %w", name, err)
	}
	return e.flush()
}

// sleep waits for d or for the end of ctx, whose cause it then returns.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
