package codex

import (
	"slices"

	"mcpagents/internal/mcp/proxy"
)

// maxSuppressed bounds the answers that Codex still owes for requests that were
// answered or given up here. One that owes so many is not going to answer.
const maxSuppressed = 32

// maxEnded bounds the memory of cancelled requests whose turn has ended: Codex
// need not answer them, but must not be heard if it does.
const maxEnded = 256

// suppress drops the answer to r that may still come. Until then its id must
// not be used again.
func (b *bridge) suppress(r *request) {
	if private(r.key) {
		return // its answer never goes to the client
	}
	b.suppressed[r.key] = r
	if len(b.suppressed) < maxSuppressed {
		return
	}
	b.alarms.After(0, func() {
		if len(b.suppressed) >= maxSuppressed && !b.gone && b.verdict == nil {
			b.owesTooMuch()
		}
	})
}

// owesTooMuch gives up a Codex that does not answer: the whole bridge, or only
// the child if it has served nothing.
func (b *bridge) owesTooMuch() {
	if b.session != nil && !b.session.Served {
		b.fail(b.notReady())
		return
	}
	b.finish(proxy.Outcome{Code: 1, Reason: "late-response suppression limit reached", Emit: true})
}

// rememberEnd notes a request whose turn has ended without an answer.
func (b *bridge) rememberEnd(key string) {
	delete(b.suppressed, key)
	if private(key) || slices.Contains(b.ended, key) {
		return
	}
	b.ended = append(b.ended, key)
	if len(b.ended) > maxEnded {
		b.ended = b.ended[1:]
	}
}

// forgetEnd forgets such a request, because its answer came or its id is used
// for another one, and reports whether there was one.
func (b *bridge) forgetEnd(key string) bool {
	i := slices.Index(b.ended, key)
	if i >= 0 {
		b.ended = slices.Delete(b.ended, i, i+1)
	}
	return i >= 0
}

// late takes the answer of a request that was settled before, and reports
// whether it is one.
func (b *bridge) late(key string) (*request, bool) {
	if r := b.suppressed[key]; r != nil {
		delete(b.suppressed, key)
		b.heardLast(key)
		return r, true
	}
	return nil, b.forgetEnd(key)
}

// heardLast ends the record of an abandoned turn.
func (b *bridge) heardLast(key string) {
	if line := b.ledger.Settle(key); line != "" {
		b.log.Info(line)
	}
}
