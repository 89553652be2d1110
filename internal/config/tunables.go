package config

import "time"

// minClientGoneGrace is the least time that a turn may go on after its client
// has gone; with a long cancel grace it is twice that.
const minClientGoneGrace = 30 * time.Second

// tunables reads the times of provider codex that have a variable in
// milliseconds. They exist for tests and for rare trouble and are not in the
// help text; a value that is no plain number is ignored, so that a stray
// variable never keeps a server from starting. A flag wins over its variable.
func (p *parser) tunables(env func(string) (string, bool)) {
	c := &p.o.Codex
	read := func(name string, field *time.Duration) {
		if value, found := env("MCP_AGENTS_CODEX_" + name + "_MS"); found {
			if ms, ok := decimal(value); ok {
				*field = toMillis(min(ms, float64(MaxTimer/time.Millisecond)))
			}
		}
	}
	if _, given := p.given["codex_cancel_grace"]; !given {
		read("CANCEL_GRACE", &c.CancelGrace)
	}
	if _, given := p.given["codex_status_interval"]; !given {
		read("STATUS_INTERVAL", &c.StatusInterval)
	}
	c.TerminalGrace = time.Second
	c.ClientGoneGrace = max(2*c.CancelGrace, minClientGoneGrace)
	c.FlushStall = time.Minute
	c.ProgressInterval = time.Second
	c.WaitInterval = 10 * time.Second
	read("TERMINAL_GRACE", &c.TerminalGrace)
	read("CLIENT_GONE_GRACE", &c.ClientGoneGrace)
	read("FLUSH_STALL", &c.FlushStall)
	read("PROGRESS_INTERVAL", &c.ProgressInterval)
	read("WAIT_INTERVAL", &c.WaitInterval)
}
