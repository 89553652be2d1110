package browser

// This file is the whole life of a lease. Everything else only says what
// happened, by step.

// state is where the lease stands.
type state uint8

const (
	cold         state = iota // there is none
	provisioning              // one is being got; everything of the client waits
	ready                     // there is one
	checking                  // a call waits until it proves to be the one that was lent; so does everything else
	recovering                // the downstream is started anew beside it; the same
	releasing                 // one is given back; browser calls wait
)

// input is what happens to it.
type input uint8

const (
	wanted    input = iota // a browser call is next in line
	acquired               // a browser is there and has said who it is
	refused                // none is to be had, and those that waited know
	useless                // there is one, but it is not as it must be
	verified               // it is the one that was lent
	disproved              // it is not, or nobody can tell
	lost                   // the lessor says that it is gone
	unused                 // nothing came of it for a while
	stuck                  // a call took too long and may hold the downstream
	released               // it was given back, or cannot be
)

// rule is one transition.
type rule struct {
	in  state
	on  input
	to  state
	act func(*bridge) // nil does nothing
}

// rules are all transitions. An input without a rule changes nothing: a check
// that ends when the lease is gone, a call that gets stuck when it was given back.
func rules() []rule {
	return []rule{
		{cold, wanted, provisioning, (*bridge).acquire},

		{provisioning, acquired, ready, (*bridge).admit},
		{provisioning, refused, cold, nil},
		{provisioning, useless, releasing, (*bridge).giveBack},

		{ready, wanted, checking, (*bridge).check},
		{ready, unused, releasing, (*bridge).giveBack},
		{ready, disproved, releasing, (*bridge).giveBack},
		{ready, lost, cold, (*bridge).forget},
		{ready, stuck, recovering, (*bridge).recover},

		{checking, verified, ready, (*bridge).admit},
		{checking, disproved, releasing, (*bridge).giveBack},
		{checking, lost, cold, (*bridge).forget},
		{checking, stuck, recovering, (*bridge).recover},

		{recovering, verified, ready, (*bridge).admit},
		{recovering, disproved, releasing, (*bridge).giveBack},
		{recovering, lost, cold, (*bridge).forget},

		{releasing, released, cold, nil},
	}
}

// step lets an input happen, then passes on what does not wait any more.
func (b *bridge) step(on input) {
	for _, r := range rules() {
		if r.in == b.state && r.on == on {
			b.state = r.to
			b.Clock.Cancel(b.idle)
			if r.act != nil {
				r.act(b)
			}
			b.armIdle()
			b.Pump()
			return
		}
	}
}

// holds reports whether everything of the client waits.
func (s state) holds() bool { return s == provisioning || s == checking || s == recovering }

func (s state) String() string {
	return [...]string{"cold", "provisioning", "ready", "checking", "recovering", "releasing"}[s]
}

func (i input) String() string {
	return [...]string{"wanted", "acquired", "refused", "useless", "verified", "disproved", "lost", "unused", "stuck", "released"}[i]
}
