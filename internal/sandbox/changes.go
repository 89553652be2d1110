package sandbox

import (
	"sync"

	"mcpagents/internal/sandbox/wire"
)

// changes hands reports of changed files to a callback on a goroutine of its
// own, so that the reader never waits for a disk. Only the latest content of
// each file counts.
type changes struct {
	mu     sync.Mutex
	wake   sync.Cond
	to     func(wire.Collected)
	latest map[string]wire.Collected
	closed bool
	done   chan struct{}
}

func newChanges() *changes {
	c := &changes{latest: map[string]wire.Collected{}, done: make(chan struct{})}
	c.wake.L = &c.mu
	go c.run()
	return c
}

func (c *changes) put(f wire.Collected) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest[f.Name] = f
	c.wake.Signal()
}

func (c *changes) call(to func(wire.Collected)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = to
}

// close delivers what is still there and waits for it.
func (c *changes) close() {
	c.mu.Lock()
	c.closed = true
	c.wake.Signal()
	c.mu.Unlock()
	<-c.done
}

func (c *changes) run() {
	defer close(c.done)
	for {
		f, to, ok := c.next()
		if !ok {
			return
		}
		if to != nil {
			to(f)
		}
	}
}

func (c *changes) next() (wire.Collected, func(wire.Collected), bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.latest) == 0 {
		if c.closed {
			return wire.Collected{}, nil, false
		}
		c.wake.Wait()
	}
	for name, f := range c.latest {
		delete(c.latest, name)
		return f, c.to, true
	}
	panic("unreachable")
}
