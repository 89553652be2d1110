package agent

import "slices"

// maxThreads bounds the memory of threads.
const maxThreads = 64

// Threads remembers where threads work, the latest used ones. The zero value is
// ready.
type Threads struct {
	places []place // the latest used one last
}

type place struct{ thread, cwd, sandbox string }

// Remember notes where a thread works.
func (t *Threads) Remember(thread, cwd, sandbox string) {
	t.places = slices.DeleteFunc(t.places, func(p place) bool { return p.thread == thread })
	if len(t.places) >= maxThreads {
		t.places = t.places[1:]
	}
	t.places = append(t.places, place{thread, cwd, sandbox})
}

// Find returns where a thread works.
func (t *Threads) Find(thread string) (cwd, sandbox string, ok bool) {
	for _, p := range t.places {
		if p.thread == thread {
			t.Remember(p.thread, p.cwd, p.sandbox)
			return p.cwd, p.sandbox, true
		}
	}
	return "", "", false
}
