package codex

import "fmt"

// This file is the whole life of a request that Codex has: of the client's, or
// of a job. Everything else only says what happened, by step.

// state is where a request stands.
type state uint8

const (
	open      state = iota // Codex works on it, or will
	finishing              // its turn has ended; the answer has TerminalGrace to come
	lapsed                 // that has passed inside a half-written line
	overdue                // a deadline passed inside a half-written line
	stuck                  // CancelGrace later the line is as it was
	canceling              // Codex was told to stop and has CancelGrace to confirm it
	confirmed              // it has, but inside a half-written line
	unheard                // it has not, and a line is half written
	settled                // nothing more will come of it, or what comes is dropped
)

// input is what happens to a request.
type input uint8

const (
	answered input = iota // the native answer came, whole
	ended                 // an event said that the turn is over
	deadline              // the idle or the hard deadline passed
	canceled              // the client, or the owner of the job, wants no answer any more
	grace                 // the time of the state passed
	lineEnd               // the half-written line came to its end
)

// place says whether an input counts inside a half-written line of Codex. Such
// a line may be the very answer, so that nobody can be told yet that none came.
type place uint8

const (
	anywhere place = iota
	atEnd          // between lines
	inLine
)

// rule is one transition.
type rule struct {
	in  state
	on  input
	at  place
	to  state
	act func(*bridge, *request) // nil does nothing
}

// rules are all transitions. An input without a rule changes nothing: a second
// cancel, a second end of a turn.
func rules() []rule {
	return []rule{
		{open, answered, anywhere, settled, (*bridge).deliver},
		{open, ended, anywhere, finishing, (*bridge).awaitAnswer},
		{open, canceled, anywhere, canceling, (*bridge).stopTurn},
		{open, deadline, atEnd, settled, (*bridge).expire},
		{open, deadline, inLine, overdue, (*bridge).awaitLine},

		{finishing, answered, anywhere, settled, (*bridge).deliver},
		{finishing, grace, atEnd, settled, (*bridge).recoverAnswer},
		{finishing, grace, inLine, lapsed, (*bridge).watchLine},
		{finishing, deadline, atEnd, settled, (*bridge).recoverAnswer},
		{finishing, deadline, inLine, finishing, (*bridge).tearDown},
		{finishing, canceled, atEnd, settled, (*bridge).confirm},
		{finishing, canceled, inLine, confirmed, (*bridge).awaitLine},

		{lapsed, answered, anywhere, settled, (*bridge).deliver},
		{lapsed, lineEnd, anywhere, settled, (*bridge).recoverAnswer},
		{lapsed, deadline, anywhere, lapsed, (*bridge).tearDown},
		{lapsed, canceled, anywhere, confirmed, (*bridge).awaitLine},

		{overdue, answered, anywhere, settled, (*bridge).deliver},
		{overdue, ended, anywhere, finishing, (*bridge).awaitAnswer},
		{overdue, lineEnd, anywhere, settled, (*bridge).expire},
		{overdue, canceled, anywhere, canceling, (*bridge).stopTurn},
		{overdue, grace, anywhere, stuck, (*bridge).awaitLine},

		{stuck, answered, anywhere, settled, (*bridge).deliver},
		{stuck, ended, anywhere, finishing, (*bridge).awaitAnswer},
		{stuck, lineEnd, anywhere, settled, (*bridge).expire},
		{stuck, canceled, anywhere, canceling, (*bridge).stopTurn},
		{stuck, grace, anywhere, stuck, (*bridge).tearDown},

		{canceling, answered, anywhere, settled, (*bridge).discard},
		{canceling, ended, atEnd, settled, (*bridge).confirm},
		{canceling, ended, inLine, confirmed, (*bridge).awaitLine},
		{canceling, grace, atEnd, settled, (*bridge).abandon},
		{canceling, grace, inLine, unheard, (*bridge).awaitLine},

		{confirmed, answered, anywhere, settled, (*bridge).discard},
		{confirmed, lineEnd, anywhere, settled, (*bridge).confirm},
		{confirmed, grace, anywhere, confirmed, (*bridge).tearDown},

		{unheard, answered, anywhere, settled, (*bridge).discard},
		{unheard, ended, atEnd, settled, (*bridge).confirm},
		{unheard, ended, inLine, confirmed, (*bridge).awaitLine},
		{unheard, lineEnd, anywhere, settled, (*bridge).abandon},
		{unheard, grace, anywhere, unheard, (*bridge).tearDown},
	}
}

// ruleFor returns the rule for an input, nil if there is none.
func ruleFor(in state, on input, halfLine bool) *rule {
	for _, r := range rules() {
		if r.in == in && r.on == on && (r.at == anywhere || (r.at == inLine) == halfLine) {
			return &r
		}
	}
	return nil
}

// step lets an input happen to r and reports whether it changed anything.
func (b *bridge) step(r *request, on input) bool {
	rule := ruleFor(r.state, on, b.HalfLine())
	if rule == nil {
		return false
	}
	r.state = rule.to
	delete(b.awaiting, r)
	b.Clock.Cancel(r.grace)
	if rule.to == settled {
		b.Settle(r)
	}
	if rule.act != nil {
		rule.act(b, r)
	}
	return true
}

// wanted reports whether somebody still waits for the answer.
func (s state) wanted() bool { return s < canceling }

// teardownReason says why the whole bridge ends for a request that Codex left
// inside a half-written line.
func (r *request) teardownReason() string {
	switch r.state {
	case confirmed:
		return fmt.Sprintf("cancellation was confirmed by %s, but codex left a frame unterminated", r.endKind)
	case unheard:
		return "cancellation was not acknowledged, and codex left a frame unterminated"
	case finishing, lapsed:
		return "request " + r.late + " in its terminal grace, and codex left a frame unterminated"
	}
	return "request " + r.late + ", and codex left a frame unterminated"
}

func (s state) String() string {
	return [...]string{"open", "finishing", "lapsed", "overdue", "stuck", "canceling", "confirmed", "unheard", "settled"}[s]
}

func (i input) String() string {
	return [...]string{"answered", "ended", "deadline", "canceled", "grace", "lineEnd"}[i]
}
