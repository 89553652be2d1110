package codex

import (
	"slices"
)

// maxSuppressed bounds the answers that Codex still owes for requests that were
// answered or given up here. One that owes so many is not going to answer.
const maxSuppressed = 32

// maxEnded bounds the memory of cancelled requests whose turn has ended: Codex
// need not answer them, but must not be heard if it does.
const maxEnded = 256

// rememberEnd notes a request whose turn has ended without an answer.
func (b *bridge) rememberEnd(key string) {
	delete(b.Owed, key)
	if b.Reserved(key) || slices.Contains(b.ended, key) {
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
	if r := b.Owed[key]; r != nil {
		delete(b.Owed, key)
		b.heardLast(key)
		return r, true
	}
	return nil, b.forgetEnd(key)
}

// heardLast ends the record of an abandoned turn.
func (b *bridge) heardLast(key string) {
	if line := b.ledger.Settle(key); line != "" {
		b.Log.Info(line)
	}
}
