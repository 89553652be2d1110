package codex

import (
	"context"

	"mcpagents/internal/stdio"
)

// A client may vanish without closing its end of the pipes: it hangs, or a
// wrapper holds them open. What is here finds that out, where it is asked for,
// and then goes on as if the input had ended.

// guardParent starts the watchdog. The channel that it returns is closed when it has
// ended, which the end of ctx makes it do.
func (b *bridge) guardParent(ctx context.Context, dog stdio.Watchdog) <-chan struct{} {
	ended, orphan := make(chan struct{}), make(chan struct{})
	b.orphan = orphan
	go func() {
		defer close(ended)
		if dog.Wait(ctx) {
			close(orphan)
		}
	}()
	return ended
}

func (b *bridge) orphaned() {
	b.log.Info("the client's process has ended")
	b.clientGone()
}

// heard starts the client's idle time anew.
func (b *bridge) heard() {
	if b.cfg.ClientIdle <= 0 || b.gone {
		return
	}
	b.alarms.Cancel(b.idle)
	b.idle = b.alarms.After(b.cfg.ClientIdle, func() {
		if len(b.open) > 0 || len(b.jobs.Active()) > 0 {
			b.heard()
			return
		}
		b.log.Info("the client sent nothing for " + b.cfg.ClientIdle.String())
		b.clientGone()
	})
}
