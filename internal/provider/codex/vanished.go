package codex

// orphaned goes on as if the input had ended, because the client's process has.
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
